"""Measures the shape of the source: how long files and functions are, and how they hang together.

    python tools/house.py                     this tree
    python tools/house.py OTHER/src/privlearn beside another one, e.g. of an older commit

A table in Markdown. Nothing here is a verdict; the numbers that issue by issue get better or worse are in
docs/explanation/house.md.
"""

from __future__ import annotations

import ast
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "privlearn"
Graph = Mapping[str, frozenset[str]]
"""The modules that each module imports when it is imported itself."""


def main() -> None:
    trees = [*map(Path, sys.argv[1:]), PACKAGE]
    columns = [measured(tree) for tree in trees]
    print("|" + "".join(f" | {tree.name}" for tree in trees) + " |")
    print("|---" * (len(trees) + 1) + "|")
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


def measured(package: Path) -> dict[str, str]:
    """Each number by its name."""
    sources = {source: source.read_text(encoding="utf-8") for source in sorted(package.rglob("*.py"))}
    lengths = [len(text.splitlines()) for text in sources.values()]
    parsed = {module_name(package, source): ast.parse(text) for source, text in sources.items()}
    functions = sorted(length for tree in parsed.values() for length in function_lengths(tree))
    graph = import_graph(parsed)
    chain = None if longest_chain(with_packages(graph)) is None else longest_chain(graph)
    imported = sum(import_lines(tree) for tree in parsed.values())
    return {
        "files": str(len(sources)),
        "lines": str(sum(lengths)),
        "lines of a file, median and largest": f"{statistics.median(lengths):.0f}, {max(lengths)}",
        "lines of a function, median and 90th percentile": f"{statistics.median(functions):.0f}, "
        f"{functions[int(0.9 * len(functions))]}",
        "share of lines that are imports": f"{100 * imported / sum(lengths):.1f} %",
        "longest chain of imports": "cyclic" if chain is None else str(chain),
        "modules with one importer": str(sum(count == 1 for count in importers(graph).values())),
        "largest folder (files)": str(max(Counter(source.parent for source in sources).values())),
        "pairs of places that share six or more lines": repeated(package),
    }


def module_name(package: Path, source: Path) -> str:
    parts = source.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def function_lengths(tree: ast.Module) -> Iterator[int]:
    """Lines of each function, the docstring not counted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node) is not None
            yield _lines(node) - (_lines(node.body[0]) if documented else 0)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def import_lines(tree: ast.Module) -> int:
    """Lines of all import statements, wherever they stand."""
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum(map(_lines, statements))


def import_graph(parsed: Mapping[str, ast.Module]) -> Graph:
    """Without imports that are for type checkers alone, or wait until a function is called."""
    return {
        name: frozenset(imported for node in _run_at_import(tree) for imported in _modules(node, parsed))
        - {name}
        for name, tree in parsed.items()
    }


def with_packages(graph: Graph) -> Graph:
    """Also the packages on the way, which Python imports before what is in them: a circle may go through one.

    Those that a module is in itself have been begun before it, and wait for nothing.
    """
    on_the_way = {
        name: {package for other in imported for package in _packages(other)} - _packages(name) - {name}
        for name, imported in graph.items()
    }
    return {name: imported | on_the_way[name] & graph.keys() for name, imported in graph.items()}


def _packages(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))}


def _run_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        waits = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if not waits and not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            yield from _run_at_import(node)


def _modules(node: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """The modules that a statement names; not the packages on the way to them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module in known:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in known else str(node.module)


def longest_chain(graph: Graph) -> int | None:
    """Modules in the longest path along imports; None if they go round in a circle."""
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


def importers(graph: Graph) -> Counter[str]:
    return Counter(imported for names in graph.values() for imported in names)


def repeated(package: Path) -> str:
    """As the program `duplicates` counts them, where it is installed."""
    program = shutil.which("duplicates")
    if program is None:
        return "not measured"
    words = [program, "--repo", str(package), "--most", "200", "--seconds", "120"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.match(r"(\d+) pairs", told)
    return found[1] if found else "0" if told.startswith("no duplicates") else "not measured"


if __name__ == "__main__":
    main()
