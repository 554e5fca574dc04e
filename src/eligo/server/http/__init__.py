"""HTTP: connections, the guard that every request passes, and the endpoints with their handlers."""
