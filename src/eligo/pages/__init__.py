"""Pages: a run, a plan or a report to look at, live from a server or as one file."""
