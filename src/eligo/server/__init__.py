"""The server: hands out tasks to clients over HTTP, and restores its complete state after a crash."""
