"""`python -m autoweight` is the command line."""

from autoweight.cli.main import main

if __name__ == "__main__":
    main()
