"""``python -m privlearn`` is the command ``privlearn``."""

from privlearn.cli import main

main()
