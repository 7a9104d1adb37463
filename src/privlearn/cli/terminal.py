"""Printing for all commands: tables, progress, lists, and errors that say what to type."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from privlearn.budget.pending import watch_charges
from privlearn.errors import InvalidParameter, PrivlearnError
from privlearn.imports import explain_missing

_PROGRESS_DELAY_SECONDS = 2.0

output = Console()
messages = Console(stderr=True)

_CTRL_C, _SIGTERM = (128 + number for number in (signal.SIGINT, signal.SIGTERM))
"""Exit codes of a process that was stopped."""


def end_on_sigterm() -> None:
    """Let SIGTERM end the process as Ctrl-C does, so that messages are printed and reservations are settled."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, *_: object) -> NoReturn:
    raise SystemExit(128 + number)


@contextmanager
def explain_errors() -> Iterator[None]:
    """Turn errors into one red message and an exit code: 2 for a wrong command line, 1 for everything else."""
    try:
        with explain_missing(), _report_charges():
            yield
    except InvalidParameter as error:
        _stop(_with_notes(error), 2)
    except PrivlearnError as error:
        _stop(_with_notes(error), 1)
    except OSError as error:
        _stop(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}", 1)
    except MemoryError:
        _stop("not enough memory. Use a larger machine, or fewer columns or knots in the schema.", 1)
    except Exception as error:
        _report_defect(error)
        raise SystemExit(1) from None


def _stop(message: str, code: int) -> NoReturn:
    complain(message)
    raise SystemExit(code) from None


@contextmanager
def _report_charges() -> Iterator[None]:
    """Print what was charged if the command is stopped; typer turns Ctrl-C into an exit code."""
    with watch_charges() as charges:
        try:
            yield
        except KeyboardInterrupt:
            _stop(f"stopped: {charges}", _CTRL_C)
        except SystemExit as stop:
            if stop.code in (_CTRL_C, _SIGTERM):
                complain(f"stopped: {charges}")
            raise


def _with_notes(error: BaseException) -> str:
    """Return the message with notes about charges, if there are any."""
    notes = getattr(error, "__notes__", ())
    return ". ".join([str(error).removesuffix("."), *notes]) if notes else str(error)


def say(message: str) -> None:
    """Print a line of progress that stays on the screen, on stderr."""
    messages.print(Text(message), soft_wrap=True)


def complain(message: str) -> None:
    """Print an error in red, on stderr."""
    messages.print(Text(f"error: {message}", style="bold red"), soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning in yellow, on stderr."""
    messages.print(Text(message, style="bold yellow"), soft_wrap=True)


def _report_defect(error: Exception) -> None:
    """Print where an unexpected error happened, but not its message, which may quote a cell."""
    complain(
        f"unexpected {type(error).__name__}, a defect of privlearn. Its message is withheld, since it may quote the "
        "data. Please report where it happened:"
    )
    for frame in traceback.extract_tb(error.__traceback__):
        say(f"  {frame.filename}:{frame.lineno} in {frame.name}")


class LateProgress:
    """A progress bar on stderr that appears only if the work takes longer than two seconds.

    ``total``: number of steps; without it the bar only shows activity.
    """

    def __init__(self, description: str, total: int | None = None) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=messages, transient=True)
        self._task = self._bar.add_task(description, total=total)
        self._timer = threading.Timer(_PROGRESS_DELAY_SECONDS, self._bar.start)
        self._timer.daemon = True

    def __enter__(self) -> LateProgress:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._timer.join()  # it may be starting the bar right now
        if self._bar.live.is_started:  # stopping a bar that never started would print an empty line
            self._bar.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the bar, so that a question can be answered."""
        self._timer.cancel()
        self._timer.join()
        is_shown = self._bar.live.is_started
        if is_shown:
            self._bar.stop()
        yield
        if is_shown:
            self._bar.start()

    def describe(self, description: str) -> None:
        """Change the text next to the bar."""
        self._bar.update(self._task, description=description)

    def follow(self, activity: str) -> Callable[[object], None]:
        """Return a callback for `watch_passes` that shows the activity and how far it is."""
        return lambda passes: self.describe(f"{activity}: {passes}")

    def advance(self, steps: int = 1) -> None:
        """Move the bar forward."""
        self._bar.advance(self._task, steps)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    right: Collection[str] = (),
    unbroken: Collection[str] = (),
) -> None:
    """Print a table that folds long cells to the width of the terminal.

    ``rows``: plain text: brackets are not read as markup. ``right`` and ``unbroken``: headings of columns that are
    aligned to the right, and of those whose cells are never folded.
    """
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for heading in headings:
        justify: Any = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=heading in unbroken)
    for row in rows:
        table.add_row(*map(Text, row))
    output.print(table)


def aligned_lines(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Yield the rows as lines of aligned columns that are never folded; ``right`` are indices of columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def join_values(values: Sequence[Any], max_values: int = 8) -> str:
    """Return the first values of a list, and how many more there are."""
    text = ", ".join(str(value) for value in values[:max_values])
    return text if len(values) <= max_values else f"{text} and {len(values) - max_values} more"
