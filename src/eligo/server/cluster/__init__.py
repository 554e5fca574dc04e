"""Several servers on one database: which server holds each workflow, and calls that are forwarded to it."""
