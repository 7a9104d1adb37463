"""Report names and docstrings that break the rules of CONTRIBUTING.md, "English".

    python tools/english.py                          counts for each directory of src/privlearn
    python tools/english.py --list src/privlearn/x   every offence below that path, one per line

Four patterns are counted: functions named by a participle (`told`), docstrings of functions that are fragments
("What ...", "Of ..."), identifiers with a word of the old vocabulary (`places`), and old phrases in docstrings,
comments and messages ("so many", "beside"). Findings are places to look at; `EXCEPTIONS` lists the justified ones.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "privlearn"

IRREGULAR = frozenset([
    "told", "asked", "made", "found", "kept", "shown", "chosen", "known", "drawn", "held", "given", "taken",
    "written", "said", "seen", "sent", "built", "bought", "paid", "spent", "left", "meant", "sought",
    "wanted", "laid", "gone", "begun", "thought", "foreseen", "foretold", "lent", "forgotten",
])  # fmt: skip
PARTICIPLE = re.compile(r"(?!.*(?:seed|feed|need|speed|embed|shed)$)[a-z]{2,}ed")
FIELD_TERMS = frozenset([
    "fitted_", "certified_", "weighted_", "truncated_", "expected_", "shared_", "signed_", "unsigned_",
    "bounded_",
])  # fmt: skip
"""Participles that are adjectives of the field when a noun follows: `expected_error`, `weighted_rows`."""

EXCEPTIONS = frozenset({"get_params", "set_params", "simulated_census", "ordered", "closed"})

FRAGMENT = re.compile(
    r"(?:PRIVATE: |Public: |Touch the data: )?"
    r"(?:What|Where|Whether|How|Which|Whose|Who|Why|When|Of|The|A|An|As|All|Each|Every|Some|Those|That|This|These|One|"
    r"So|Same|Its|His|No|Nothing|Without|With|For|From|In|On|By|At|If|Most|Least|Number|Names?|Rows|Columns)\b",
    re.IGNORECASE,
)
OLD_NAMES = frozenset([
    "told", "asked", "asking", "wanted", "listed", "facts", "goal", "promise", "patience", "room", "folder",
    "words", "bought", "purchase", "buying", "law", "spread", "places", "place", "most", "least", "largest",
    "fewest",
])  # fmt: skip
OLD_PHRASES = {
    "so many": re.compile(r"\bso (?:many|much|few)\b(?! (?:as|that)\b)", re.I),
    "shall, anew, ...": re.compile(r"\b(?:shall|anew|for ever|in vain|hence|thereof|whilst|beside)\b", re.I),
    "whoever, nobody, ...": re.compile(r"\b(?:whoever|whatever|nobody|somebody|anybody|everybody)\b", re.I),
    "of its own": re.compile(r"\bof (?:its|their|one's|your|our) own\b", re.I),
    "objects that speak": re.compile(
        r"\b(?:column|schema|file|certificate|table|cell|row|release|kind|plan|page|mechanism)s? "
        r"(?:says?|said|speaks?|knows?|tells?)\b",
        re.I,
    ),
    "is no, is none": re.compile(
        r"\b(?:is|are|was) (?:none|no) (?!more|longer|less|such|need|reason|way)\w+", re.I
    ),
    "old vocabulary": re.compile(r"\b(?:bought|to buy|patience|promises?|told|tells)\b", re.I),
}


class Offence(NamedTuple):
    """One place to look at."""

    pattern: str
    path: Path
    line: int
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Report names and docstrings that break the rules of English."
    )
    parser.add_argument("--list", type=Path, metavar="PATH", help="print every offence below this path")
    path = parser.parse_args().list
    if path is not None:
        for offence in find_offences(path.resolve()):
            print(f"{offence.path.relative_to(ROOT)}:{offence.line}: {offence.pattern}: {offence.text}")
        return
    print(summary(PACKAGE))


def summary(package: Path) -> str:
    """Return a table with the counts of each pattern for each directory."""
    counts: dict[str, Counter[str]] = {}
    for offence in find_offences(package):
        directory = offence.path.relative_to(package).parts[0]
        counts.setdefault(directory, Counter())[offence.pattern] += 1
    patterns = sorted({pattern for counter in counts.values() for pattern in counter})
    rows = [
        [name, *(str(counter[pattern]) for pattern in patterns)] for name, counter in sorted(counts.items())
    ]
    total = [str(sum(counter[pattern] for counter in counts.values())) for pattern in patterns]
    lines = [["directory", *patterns], ["---"] * (len(patterns) + 1), *rows, ["total", *total]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def find_offences(path: Path) -> Iterator[Offence]:
    """Yield every offence in the Python files below a path."""
    for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        text = source.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for node in ast.walk(tree):
            for pattern, found in _offences_of(node):
                yield Offence(pattern, source, getattr(node, "lineno", 1), found)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                for pattern in _phrases(token.string):
                    yield Offence(pattern, source, token.start[0], token.string)


def _offences_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the pattern and the offending text of each offence of one node."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if is_participle(node.name):
            yield "participle names", node.name
        docstring = ast.get_docstring(node)
        if docstring and FRAGMENT.match(docstring) and not is_property(node):
            yield "fragment docstrings", docstring.splitlines()[0]
    for name in _defined_names(node):
        if OLD_NAMES & set(name.strip("_").lower().split("_")):
            yield "old names", name
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
        for pattern in _phrases(node.value):
            yield pattern, " ".join(node.value.split())[:120]


def _defined_names(node: ast.AST) -> list[str]:
    """Return the names that a node defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return []


def _phrases(text: str) -> list[str]:
    """Return the names of the old phrases in a text."""
    return [name for name, phrase in OLD_PHRASES.items() if phrase.search(text)]


def is_participle(name: str) -> bool:
    """Return whether a function's name begins with a participle that is not an adjective of the field.

    >>> [name for name in ("told", "_listed", "expected_error", "read_rows", "embed") if is_participle(name)]
    ['told', '_listed']
    """
    if name in EXCEPTIONS or name.startswith("__"):
        return False
    first, *rest = name.strip("_").split("_")
    if rest and f"{first}_" in FIELD_TERMS:
        return False
    return first in IRREGULAR or PARTICIPLE.fullmatch(first) is not None


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is a property, whose docstring may be a noun like an attribute's."""
    names = {getattr(part, "id", getattr(part, "attr", "")) for part in node.decorator_list}
    return bool(names & {"property", "cached_property", "computed_field", "setter"})


if __name__ == "__main__":
    main()
