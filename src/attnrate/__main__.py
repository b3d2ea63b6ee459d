"""`python -m attnrate` is the command `attnrate`."""

from attnrate.cli import main

main()
