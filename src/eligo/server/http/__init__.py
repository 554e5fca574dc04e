"""HTTP: one table of routes, one guard that every request passes, and the handlers behind it."""
