"""Pages: a workflow while it is carried out, and what was planned, compared or run, as documents that pages are made of."""
