"""What several holders make together: a model, or counts; both carry the record of their run."""

from __future__ import annotations

from privlearn.release.archive import format_of
from privlearn.release.artifact import Release
from privlearn.release.counts_file import CountsFile

Outcome = Release | CountsFile


def read_outcome(raw: bytes) -> Outcome:
    """The file of these bytes, whichever it is."""
    if format_of(raw) == CountsFile.format:
        return CountsFile.from_bytes(raw)
    return Release.from_bytes(raw)
