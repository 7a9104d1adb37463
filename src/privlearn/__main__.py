"""The command ``privlearn``, also as ``python -m privlearn``."""

from __future__ import annotations

import signal


def run() -> None:
    """Ctrl-C ends it without a traceback from the first moment; once the commands are there, they explain it."""
    explains = signal.getsignal(signal.SIGINT)
    if explains is signal.default_int_handler:  # else the caller has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from privlearn.cli import main

    signal.signal(signal.SIGINT, explains)
    main()


if __name__ == "__main__":
    run()
