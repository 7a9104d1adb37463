"""The catalog as it is now: a snapshot, replaced by another when the console has changed something.

Whoever asks for it waits for nobody: it is read again by the process that made the change, at once, and by the others
within a second (the watch of a server, the next job of a training process).
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from privlearn.service.holder.datasets import Catalog
from privlearn.service.holder.made import Made, read_made
from privlearn.service.holder.same_files import check_declared
from privlearn.service.holder.settings import Owner


class Catalogs:
    """One after another.

    Parameters
    ----------
    owner : Owner
        The holder's file.
    counted : mapping from names to numbers of records, optional
        Of the file's data sets; without it their rows are read and checked now, and that the console serves
        none of their tables under another name.

    Attributes
    ----------
    now : Catalog
    made : Made
    """

    def __init__(self, owner: Owner, counted: Mapping[str, int] | None = None) -> None:
        self._owner = owner
        self._lock = Lock()
        self.made = read_made(owner.server.store)
        if counted is None:
            check_declared(owner, self.made)
        self.now = Catalog(owner, counted, self.made)
        self.counted = self.now.check() if counted is None else counted

    def refresh(self) -> None:
        """Look whether another process has made something."""
        with self._lock:  # or an older look could take the place of a newer one
            made = read_made(self._owner.server.store)
            if made != self.made:
                self._replace(made)

    def _replace(self, made: Made) -> None:
        self.now = Catalog(self._owner, self.counted, made)
        self.made = made
