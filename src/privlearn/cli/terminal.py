"""What all commands print with: tables, progress, lists, and errors that say what to type."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from privlearn.charged import watch_charges
from privlearn.errors import InvalidParameter, PrivlearnError
from privlearn.heavy import explained

_PATIENCE_SECONDS = 2.0

output = Console()
messages = Console(stderr=True)


_CTRL_C, _SIGTERM = (128 + number for number in (signal.SIGINT, signal.SIGTERM))
"""Exit codes of a process that was stopped."""


def end_on_sigterm() -> None:
    """Let SIGTERM end the process as Ctrl-C does, so that what must be said or settled at the end is."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, *_: object) -> NoReturn:
    raise SystemExit(128 + number)


@contextmanager
def explain_errors() -> Iterator[None]:
    """Turn errors into one red message and an exit code: 2 for what was typed wrongly, 1 for the rest."""
    try:
        with explained(), _telling_what_was_charged():
            yield
    except InvalidParameter as error:
        complain(_with_notes(str(error), error))
        raise SystemExit(2) from None
    except PrivlearnError as error:
        complain(_with_notes(str(error), error))
        raise SystemExit(1) from None
    except OSError as error:
        complain(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}")
        raise SystemExit(1) from None
    except MemoryError:
        complain("not enough memory: take a machine with more, or fewer columns or knots in the schema")
        raise SystemExit(1) from None
    except Exception as error:
        _report_defect(error)
        raise SystemExit(1) from None


@contextmanager
def _telling_what_was_charged() -> Iterator[None]:
    """Whoever stops a command reads what the ledger says of it; typer makes an exit code of Ctrl-C."""
    with watch_charges() as charges:
        try:
            yield
        except KeyboardInterrupt:
            complain(f"stopped: {charges}")
            raise SystemExit(_CTRL_C) from None
        except SystemExit as stop:
            if stop.code in (_CTRL_C, _SIGTERM):
                complain(f"stopped: {charges}")
            raise


def _with_notes(message: str, error: BaseException) -> str:
    """With what was charged, if anything was."""
    return ". ".join([message, *getattr(error, "__notes__", ())])


def say(message: str) -> None:
    """A line of progress that stays on the screen."""
    messages.print(Text(message), soft_wrap=True)


def complain(message: str) -> None:
    _print_line(f"error: {message}", "bold red")


def warn(message: str) -> None:
    _print_line(message, "bold yellow")


def _print_line(text: str, style: str) -> None:
    messages.print(Text(text, style=style), soft_wrap=True)


def _report_defect(error: Exception) -> None:
    """Where it happened, but not its message: whatever a library raised may quote a cell."""
    complain(
        f"unexpected {type(error).__name__}, a defect of privlearn. Its message is withheld, since it may "
        "quote the data; please report where it happened:"
    )
    for frame in traceback.extract_tb(error.__traceback__):
        messages.print(Text(f"  {frame.filename}:{frame.lineno} in {frame.name}"), soft_wrap=True)


class LateProgress:
    """A bar on stderr that appears only if the work takes longer than two seconds.

    Parameters
    ----------
    description : str
    total : int, optional
        Number of steps; without it the bar only shows that something happens.
    """

    def __init__(self, description: str, total: int | None = None) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=messages, transient=True)
        self._task = self._bar.add_task(description, total=total)
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._bar.start)
        self._timer.daemon = True

    def __enter__(self) -> LateProgress:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._timer.join()  # it may be starting the bar right now
        if self._bar.live.is_started:  # stopping one that never started would print an empty line
            self._bar.stop()

    def describe(self, description: str) -> None:
        self._bar.update(self._task, description=description)

    def tell(self, doing: str) -> Callable[[object], None]:
        """For `watch_passes`: shows what is done, and how far it is."""
        return lambda passes: self.describe(f"{doing}: {passes}")

    def advance(self, steps: int = 1) -> None:
        self._bar.advance(self._task, steps)


def listed(values: Sequence[Any], most: int = 8) -> str:
    """The first values of a list, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"
