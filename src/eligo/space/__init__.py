"""Space: the files that wait between tasks, the least peak that any order needs, and an order that comes close."""
