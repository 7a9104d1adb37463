"""Measure the shape of the source: sizes, imports, English, and the files that each flow touches.

    python tools/house.py                     print the table for this tree
    python tools/house.py --write             also write it to docs/explanation/house.md
    python tools/house.py OTHER/src/privlearn  next to another tree, such as an older commit
    python tools/house.py --flows             also run the five flows and count the files they touch (a minute)

`tests/docs/test_house.py` compares docs/explanation/house.md with the measurement.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.english import FRAGMENT, is_participle, is_property
from tools.flows import count_files

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "privlearn"
PAGE = ROOT / "docs" / "explanation" / "house.md"
BEGIN, END = "<!-- measured by make house -->\n", "<!-- end -->"
Graph = Mapping[str, frozenset[str]]
"""The modules that each module imports when it is imported itself."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the shape of the source.")
    parser.add_argument("trees", nargs="*", type=Path, help="other trees to print in columns before this one")
    parser.add_argument("--write", action="store_true", help="write the table to docs/explanation/house.md")
    parser.add_argument("--flows", action="store_true", help="also count the files that five flows touch")
    options = parser.parse_args()
    text = table([*options.trees, PACKAGE])
    print(text, end="")
    print_unusual_lengths(PACKAGE)
    if options.flows:
        for name, count in count_files().items():
            print(f"| files touched: {name} | {count} |")
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")


def table(trees: list[Path]) -> str:
    """Return the measurements in Markdown, one column for each tree."""
    columns = [measure(tree) for tree in trees]
    lines = ["|" + "".join(f" | {tree.name}" for tree in trees) + " |", "|---" * (len(trees) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(column[name] for column in columns) + " |" for name in columns[0]]
    return "\n".join(lines) + "\n"


def measure(package: Path) -> dict[str, str]:
    """Return each measurement by its name."""
    sources = {source: source.read_text(encoding="utf-8") for source in sorted(package.rglob("*.py"))}
    lengths = [len(text.splitlines()) for text in sources.values()]
    parsed = {module_name(package, source): ast.parse(text) for source, text in sources.items()}
    functions = sorted(length for tree in parsed.values() for length in function_lengths(tree))
    graph = import_graph(parsed)
    chain = None if max_chain(with_packages(graph)) is None else max_chain(graph)
    imported = sum(import_lines(tree) for tree in parsed.values())
    defined = [node for tree in parsed.values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    documented = [(node, ast.get_docstring(node)) for node in defined if ast.get_docstring(node)]
    fragments = sum(bool(FRAGMENT.match(str(text))) and not is_property(node) for node, text in documented)
    participles = sum(is_participle(node.name) for node in defined)
    comments = sum(line.lstrip().startswith("#") for text in sources.values() for line in text.splitlines())
    entries = [entry for entry in package.iterdir() if entry.name not in NOT_COUNTED]
    return {
        "files": f"{len(sources)}",
        "lines": f"{sum(lengths)}",
        "lines of a file, median and largest": f"{statistics.median(lengths):.0f}, {max(lengths)}",
        "files outside 60 to 300 lines": f"{len(unusual_lengths(package))}",
        "lines of a function, median and 90th percentile": f"{statistics.median(functions):.0f}, "
        f"{functions[int(0.9 * len(functions))]}",
        "share of lines that are imports": f"{100 * imported / sum(lengths):.1f} %",
        "share of lines that are comments": f"{100 * comments / sum(lengths):.1f} %",
        "longest chain of imports": "cyclic" if chain is None else str(chain),
        "modules in import cycles, late imports counted": str(
            cyclic_modules(import_graph(parsed, late=True))
        ),
        "function docstrings that are fragments": f"{100 * fragments / len(documented):.1f} %",
        "functions named by a participle": f"{100 * participles / len(defined):.1f} %",
        "top-level directories and files": f"{sum(map(Path.is_dir, entries))}, {sum(map(Path.is_file, entries))}",
        "modules that tests import by path": str(modules_in_tests(package, parsed)),
    }


def unusual_lengths(package: Path) -> dict[str, int]:
    """Return the lines of each file outside 60 to 300; an `__init__.py`, a docstring and names, may be shorter."""
    lengths = {
        source.relative_to(package).as_posix(): len(source.read_text(encoding="utf-8").splitlines())
        for source in sorted(package.rglob("*.py"))
    }
    return {
        name: length
        for name, length in lengths.items()
        if length > 300 or (length < 60 and not name.endswith("__init__.py"))
    }


def print_unusual_lengths(package: Path) -> None:
    """Print the files outside 60 to 300 lines, each with the reason that REASONS states for it."""
    for name, length in sorted(unusual_lengths(package).items(), key=lambda item: item[1]):
        reason = next((reason for pattern, reason in REASONS.items() if fnmatch(name, pattern)), "split it")
        print(f"{length:4d} {name}: {reason}")


REASONS = {
    "_*.py": "what Python or the build asks for, and no more",
    "budget/storage/migrations/versions/*": "a first revision has nothing to change",
    "budget/storage/shared.py": "below SQLite and PostgreSQL, which import it",
    "estimators/by_name.py": "the one table of names, above all estimators",
    "parties/listening.py": "shared by parties and server, and by nothing else",
    "parties/run/noisy_answers.py": "above agreements, which the answers are below",
    "server/refusals.py": "below all other modules of the server",
    "statistics/page.py": "shared by two kinds of page",
    "mechanisms/session/pinp.py": "one theorem with two calibrations",
    "mechanisms/task.py": "one value: all public parameters, each with its bound",
    "mechanisms/summed/summed.py": "one interface, with the cost of each of its questions",
    "features/kernel.py": "one interface, with its kernels of functions and of matrices",
    "features/kernels.py": "a registry: one class per kernel",
    "guarantee.py": "one value, and the registry of relations that it refers to",
    "export/report/properties.py": "one value: all that reports state",
    "server/service.py": "one class with a method per request",
    "solvers/losses.py": "a registry: one class per loss",
    "solvers/problem.py": "one value: the objective, with the rounding of each of its sums",
    "data/sources/array_files.py": "one format of files",
    "server/token_buckets.py": "one class",
    "statistics/regression/estimates.py": "one result: estimates with their intervals",
    "statistics/regression/layout.py": "one description: which sums a regression releases, at which noise",
    "estimators/forecast/forecast.py": "one result: what to expect, the search for enough, and its text",
    "statistics/regression/design.py": "one algebra: from a formula to coefficients, rows and their units",
    "export/as_*.py": "one language, one table of its expressions",
    "export/fold.py": "one pass: each part of the encoding becomes a part of the scorecard",
    "data/encoding/arrays.py": "two encoders of arrays and the bounds that both keep",
    "estimators/calibration.py": "one rule per choice: mechanism, noise, tolerance, regularization",
    "estimators/cluster/partition.py": "one side of the cluster: all that a worker is asked",
    "estimators/estimator.py": "one class: the steps of `fit` in order",
    "estimators/fit.py": "one value: the steps after reading, in order",
    "estimators/kernel_learner.py": "one class: half of it is its parameters and their help",
    "estimators/training_rows.py": "one value: rows, what is to be predicted, and the model that follows",
    "sessions/state.py": "one interface, with its two stores",
    "solvers/multinomial.py": "one objective and its solver",
    "solvers/summed.py": "one solver: the rows' side and the caller's side",
    "data/parts.py": "one description, its file, and the rows that it describes",
    "data/table_check.py": "one report: a check for each kind of finding",
    "explain/column_effects.py": "one result: all that effects show",
    "explain/uncertainty.py": "one argument: every term of an error, over one estimate of the Hessian",
    "mechanisms/release/*": "one theorem",
    "release/artifact.py": "one format, written and read",
    "release/refinement.py": "a registry: one class per step",
    "sessions/interactive.py": "one protocol: what happens to a point under the lock",
    "statistics/description/description.py": "one result: all that follows from its counts",
    "statistics/evaluation/evaluation.py": "one result: all that follows from its counts",
    "export/standalone.py": "copied into exports as one file",
    "cli/train/train.py": "one command: a third of it is its options",
    "cli/ask/results.py": "eleven short commands",
    "client/client.py": "one class with a method per request",
    "data/encoding/lookup_rows.py": "one data structure with its worked example",
    "data/sources/row_source.py": "one interface and its few implementations",
    "data/sources/table.py": "one border: all kinds of table in memory",
    "data/sources/read_columns.py": "one grammar, applied to each type of column",
    "release/base_certificate.py": "one value: all that certificates share",
    "release/encoders.py": "one format, written and read",
    "release/model.py": "one format, written and read",
    "budget/composition.py": "two compositions with one interface",
    "budget/ledger.py": "one class with a method per operation",
    "parties/run/party_run.py": "one protocol, read from top to bottom",
    "parties/secure_sum/party.py": "one protocol, read from top to bottom",
    "server/holder/settings.py": "one file, owner.toml: a class per section",
    "server/jobs/queue.py": "one table of the store and all its transitions",
}
"""Why a file is shorter or longer than others."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOT_COUNTED = {"__pycache__", "__init__.py", "__main__.py", "_version.py", "py.typed"}


def modules_in_tests(package: Path, known: Mapping[str, object]) -> int:
    """Return the number of modules below a package's directories that its tests import by path."""
    tests = package.parents[1] / "tests"
    imported = {
        name
        for source in tests.rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        for name in _modules(node, known)
    }
    packages = {name for name in known if any(other.startswith(f"{name}.") for other in known)}
    return len(imported - packages - {"privlearn"})


def cyclic_modules(graph: Graph) -> int:
    """Return the number of modules that reach themselves along imports."""
    reach: dict[str, set[str]] = {name: set(names) for name, names in graph.items()}
    for through in graph:
        for reached in reach.values():
            if through in reached:
                reached |= reach[through]
    return sum(name in reached for name, reached in reach.items())


def module_name(package: Path, source: Path) -> str:
    parts = source.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def function_lengths(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of each function, without the docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node) is not None
            yield _lines(node) - (_lines(node.body[0]) if documented else 0)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def import_lines(tree: ast.Module) -> int:
    """Return the number of lines of all import statements."""
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum(map(_lines, statements))


def import_graph(parsed: Mapping[str, ast.Module], late: bool = False) -> Graph:
    """Return the imports of each module, without those for type checkers; ``late`` adds those inside functions."""
    return {
        name: frozenset(imported for node in _import_nodes(tree, late) for imported in _modules(node, parsed))
        - {name}
        for name, tree in parsed.items()
    }


def with_packages(graph: Graph) -> Graph:
    """Add the packages on the way, which Python imports before their members: a cycle may go through one.

    The packages that contain a module are already being imported and add nothing.
    """
    on_the_way = {
        name: {package for other in imported for package in _packages(other)} - _packages(name) - {name}
        for name, imported in graph.items()
    }
    return {name: imported | on_the_way[name] & graph.keys() for name, imported in graph.items()}


def _packages(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))}


def _import_nodes(tree: ast.AST, late: bool) -> Iterator[ast.AST]:
    """Yield the nodes that run when a module is imported, or with ``late`` all but those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        waits = isinstance(node, (*FUNCTIONS, ast.Lambda)) and not late
        if not waits and not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            yield from _import_nodes(node, late)


def _modules(node: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules that a statement names, without the packages on the way."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module in known:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in known else str(node.module)


def max_chain(graph: Graph) -> int | None:
    """Return the number of modules in the longest path along imports; None if there is a cycle."""
    under_way: set[str] = set()

    @cache
    def below(name: str) -> int:
        if name in under_way:
            raise RecursionError
        under_way.add(name)
        depth = 1 + max(map(below, graph[name]), default=0)
        under_way.remove(name)
        return depth

    try:
        return max(map(below, graph))
    except RecursionError:
        return None


if __name__ == "__main__":
    main()
