"""Reproductions of the five papers' tables and figures, next to what this library measures, and their bounds.

`EXPERIMENTS` lists what `privlearn reproduce` can run: `cms11_*`, `jt13_*`, `ra12`, `rbht`. `bounds` has the theorems
with corrected constants, `study` the tables and figures of `privlearn bounds`, `compare` and `plan`. May import
everything up to `audit`. Start with `reporting.py`, then an experiment.
"""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass

from privlearn.errors import DataError, InvalidParameter, did_you_mean
from privlearn.papers.reporting import Result, Track

_ADULT = ("adult/adult.data.gz", "adult/adult.test.gz")
_KDDCUP = ("kddcup99/kddcup.data_10_percent.gz",)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper that can be reproduced.

    Attributes
    ----------
    shows : str
        Short description.
    module, function : str
        Where it is defined; imported only when it runs.
    files : tuple of str
        Files that it reads in the directory of data sets.
    quick, full : str
        Running times of the two variants on one core.
    """

    shows: str
    module: str
    function: str
    files: tuple[str, ...]
    quick: str
    full: str

    def run(self, quick: bool = False, seed: int = 0, track: Track = iter) -> Result:
        """Run the experiment and return its result; refuse at once if a file is missing."""
        self._check_files()
        module = importlib.import_module(f"privlearn.papers.{self.module}")
        result: Result = getattr(module, self.function)(quick, seed, track)
        return self._without_claims(result) if quick else result

    def _without_claims(self, result: Result) -> Result:
        """Return a quick run's numbers with its warning only: one or two draws on a sample support no claim."""
        warning, _, _ = result.agreement.partition(". ")
        if not warning.startswith("QUICK RUN"):
            return result  # formulas without random draws
        text = f"{warning}. One or two draws of the noise: no claim. The full run takes {self.full}."
        return dataclasses.replace(result, agreement=text)

    def _check_files(self) -> None:
        if not self.files:
            return
        from privlearn.data.datasets import data_directory

        missing = [file for file in self.files if not (data_directory() / file).exists()]
        if missing:
            raise DataError(f"{', '.join(missing)} not found in the directory that PRIVLEARN_DATA names")


EXPERIMENTS = {
    "cms11-table1": Experiment(
        "error against Lambda, epsilon 0.1, Adult", "cms11_tables", "cms11_table1", _ADULT, "1 s", "2 min"
    ),
    "cms11-table2": Experiment(
        "error against Lambda, epsilon 0.1, KDDCup99", "cms11_tables", "cms11_table2", _KDDCUP, "3 s", "3 min"
    ),
    "cms11-figure2": Experiment(
        "error against epsilon, Adult", "cms11_study", "cms11_figure2", _ADULT, "1 s", "1 min"
    ),
    "cms11-figure3": Experiment(
        "error against epsilon, KDDCup99", "cms11_study", "cms11_figure3", _KDDCUP, "3 s", "2 min"
    ),
    "cms11-figure4": Experiment(
        "error against rows, tuned privately, logistic",
        "cms11_tuning",
        "cms11_figure4",
        _KDDCUP,
        "3 s",
        "2 min",
    ),
    "cms11-figure5": Experiment(
        "error against rows, tuned privately, SVM", "cms11_tuning", "cms11_figure5", _KDDCUP, "3 s", "2 min"
    ),
    "jt13-figure2a": Experiment(
        "accuracy against epsilon, CoverType, cubic kernel",
        "jt13_covertype",
        "jt13_figure2a",
        ("covtype/covtype.csv.gz",),
        "8 s",
        "2 min",
    ),
    "jt13-figure2b": Experiment(
        "regression error against epsilon, many columns",
        "jt13_regression",
        "jt13_figure2b",
        ("kdd2010_algebra/algebra_2005_2006_master.txt.gz", "newsgroups20/20news-bydate.tar.gz"),
        "6 s",
        "10 min",
    ),
    "jt13-url": Experiment(
        "error against epsilon, 3.2 million columns",
        "jt13_url",
        "jt13_url",
        ("url_reputation_subset/prb.txt.gz",),
        "5 s",
        "3 min",
    ),
    "ra12-figure1": Experiment(
        "error against parties and skew, simulated", "ra12", "ra12_figure1", (), "6 s", "6 min"
    ),
    "ra12-figure2": Experiment(
        "error against parties and skew, breast cancer", "ra12", "ra12_figure2", (), "6 s", "15 min"
    ),
    "rbht-bounds": Experiment(
        "bounds on the least epsilon against accuracy", "rbht", "rbht_bounds", (), "1 s", "1 s"
    ),
}


def experiment(name: str) -> Experiment:
    """Return the experiment of that name."""
    if name not in EXPERIMENTS:
        names, hint = ", ".join(EXPERIMENTS), did_you_mean(name, EXPERIMENTS)
        raise InvalidParameter(f"there is no experiment {name!r}. Choose one of {names}{hint}")
    return EXPERIMENTS[name]
