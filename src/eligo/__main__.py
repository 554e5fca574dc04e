"""`python -m eligo` is the command."""

from eligo.cli import main

if __name__ == "__main__":
    main()
