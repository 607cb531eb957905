"""`python -m hushed` is the command `hushed`."""

from hushed.cli import main

if __name__ == "__main__":
    main()
