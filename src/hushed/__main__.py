"""`python -m hushed` is the command `hushed`."""

from hushed.cli import main

if __name__ == "__main__":  # what only lists the modules must not run it
    main()
