"""`python -m ragscore`."""

from ragscore.cli import main

if __name__ == "__main__":
    main()
