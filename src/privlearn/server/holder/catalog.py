"""All data sets of a holder: those of owner.toml and those of the console.

A `Catalog` is a snapshot. `Catalogs` replaces it after a change in the console: at once in the process that made the
change, within a second in other server processes (`Watch`), and before the next job in training processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from privlearn.data.schema.private_bounds import add_private_bounds
from privlearn.data.schema.schema import Schema
from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.estimators.forecast.stand_ins import synthetic_table
from privlearn.guarantee import Guarantee
from privlearn.server.access.keys import Caller
from privlearn.server.holder.console_state import (
    EMPTY,
    ConsoleState,
    check_declared,
    merge,
    read_console_state,
)
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import Recipe, default_recipes, estimator
from privlearn.server.holder.settings import Owner
from privlearn.server.refusals import NotFound


class Catalog:
    """All data sets of a holder. Creating a catalog reads their schemas, not their rows.

    Parameters
    ----------
    owner : Owner
        The holder's file.
    record_counts : mapping from names to numbers of records, optional
        Counts of an earlier check; without them, each table is counted when its number is first needed.
    console_state : ConsoleState, optional
        The state that the holder has added in the console.

    Attributes
    ----------
    owner : Owner
        The holder's file merged with the console's additions.
    """

    def __init__(
        self,
        owner: Owner,
        record_counts: Mapping[str, int] | None = None,
        console_state: ConsoleState = EMPTY,
    ) -> None:
        self.owner = merge(owner, console_state)
        counts = record_counts or {}
        self._of_console = {
            name: one for name, one in console_state.datasets.items() if name not in owner.datasets
        }
        self._offered = {name: _offer(self.owner, name, counts.get(name)) for name in owner.datasets}
        self._offered |= {name: self._offer_version(name) for name in self._of_console}

    def check(self) -> dict[str, int]:
        """Refuse learners and rows that do not fit their schema; return the number of records of each data set."""
        for name, offered in self._offered.items():
            for learner, recipe in offered.learners.items():
                with _name_errors(f"{name}.learners.{learner}"):
                    check_recipe(recipe, offered.schema)
            with _name_errors(name):
                offered.records  # noqa: B018 - reads the rows
        return {name: offered.records for name, offered in self._offered.items()}

    def visible_to(self, caller: Caller) -> list[OfferedDataSet]:
        """Return the data sets that the caller may see."""
        return [offered for offered in self._offered.values() if self._sees(caller, offered.name)]

    def get(self, caller: Caller, name: str) -> OfferedDataSet:
        """Return a data set; raise NotFound if it does not exist or the caller may not see it."""
        if not self._sees(caller, name):
            raise NotFound("there is no such data set for your key. List the data sets that you may use.")
        return self._offered[name]

    def find(self, name: str, version: int | None = None) -> OfferedDataSet:
        """Return a data set for the server's own work, in its current or an older version."""
        if name not in self._offered:
            raise NotFound(f"data set {name!r} is not offered any more. Put it back into the holder's file")
        current = self._offered[name]
        if name not in self._of_console or version in (None, current.version):
            return current
        return self._offer_version(name, version)

    def __contains__(self, name: str) -> bool:
        return name in self._offered

    def _offer_version(self, name: str, number: int | None = None) -> OfferedDataSet:
        """Offer a version with the schema and the count that were read when it was added."""
        version = self._of_console[name].version(number)
        schema = Schema.from_dict(version.schema)
        settings = self._of_console[name].settings_at(version, self.owner.console)
        learners = settings.learners or default_recipes(schema)
        return OfferedDataSet(name, settings, schema, learners, self.owner, version.records, version.number)

    def _sees(self, caller: Caller, name: str) -> bool:
        if name not in self._offered or (caller.datasets is not None and name not in caller.datasets):
            return False
        return caller.sees_requests or self.owner.share(caller.analyst, name) is not None


def _offer(owner: Owner, name: str, record_count: int | None) -> OfferedDataSet:
    settings = owner.datasets[name]
    with _name_errors(name):
        schema = Schema.load(settings.schema_file)
        add_private_bounds(settings.guarantee, schema.private_bounds)  # refuses another relation now
        learners = settings.learners or default_recipes(schema)
    return OfferedDataSet(name, settings, schema, learners, owner, record_count)


def check_recipe(recipe: Recipe, schema: Schema) -> None:
    """Raise if the learner cannot be trained under this schema, by calibrating it on two synthetic rows.

    The rows also serve as public points, without which some kernels cannot be released.
    """
    rows = synthetic_table(schema, 2, seed=0)
    points = None if recipe.model == "logistic" and recipe.kernel == "linear" else rows
    guarantee = Guarantee(1.0, 1e-6)
    learner = estimator(recipe, schema, guarantee, public_points=points)
    learner.prepare(rows, None, private=True).calibrate(guarantee)


@contextmanager
def _name_errors(setting: str) -> Iterator[None]:
    """Put the name of the setting in front of each error raised inside."""
    try:
        yield
    except (DataError, SchemaError, InvalidParameter) as error:
        raise type(error)(f"datasets.{setting}: {error}") from None


class Catalogs:
    """The current catalog, replaced when the console changes something.

    ``record_counts`` has the number of records of each data set of the holder's file. Without it their rows are read
    and checked now, and a table that the console serves under another name is refused.
    """

    def __init__(self, owner: Owner, record_counts: Mapping[str, int] | None = None) -> None:
        self._owner = owner
        self._lock = Lock()
        self.console_state = read_console_state(owner.server.store)
        if record_counts is None:
            check_declared(owner, self.console_state)
        self.now = Catalog(owner, record_counts, self.console_state)
        self.record_counts = self.now.check() if record_counts is None else record_counts

    def refresh(self) -> None:
        """Read the database again, and replace the catalog if another process has changed something."""
        with self._lock:  # or an older reading could replace a newer one
            state = read_console_state(self._owner.server.store)
            if state != self.console_state:
                self.now = Catalog(self._owner, self.record_counts, state)
                self.console_state = state
