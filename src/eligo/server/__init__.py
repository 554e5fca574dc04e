"""The server: tasks handed out to clients that nobody controls, over HTTP."""
