"""Several servers on one database: which server holds a workflow, and calls that are forwarded to it."""
