"""The command ``privlearn``, also as ``python -m privlearn``."""

from __future__ import annotations

import signal


def run() -> None:
    """Run the command; Ctrl-C during the first imports ends it without a traceback, later the commands handle it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # otherwise the caller ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from privlearn.cli import main

    signal.signal(signal.SIGINT, handler)
    main()


if __name__ == "__main__":
    run()
