"""What eligo does, shown on a small workflow in a folder of its own."""
