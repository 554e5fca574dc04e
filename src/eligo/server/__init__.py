"""The server: hands out tasks to clients that nobody controls, and forgets nothing when it dies."""
