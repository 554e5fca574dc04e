"""`python -m eligo` runs the command `eligo`."""

from eligo.cli import main

if __name__ == "__main__":
    main()
