"""`python -m hushed` is the command `hushed`."""

from hushed.cli import main

main()
