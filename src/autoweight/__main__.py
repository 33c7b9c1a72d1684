"""`python -m autoweight` is the command line."""

from autoweight.main import main

if __name__ == "__main__":
    main()
