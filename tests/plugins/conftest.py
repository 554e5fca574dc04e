"""What the tests of all engines share: their folder is on the path, so that they find `engine_venv`."""
