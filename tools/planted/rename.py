"""Rename identifiers in the addresses and patterns of all defects: `python -m tools.mutants --rename old=new ...`.

    reserve=hold                            everywhere
    privlearn.budget.charge:told=report     in the defects whose address begins with this text
    privlearn.ledger=privlearn.budget       in the module part of addresses, after a file or a directory has moved

An identifier is a name, attribute, parameter, argument, function or class. Text in strings does not change, except for
the expressions of f-strings; nor do the defects given as text (`TextMutant`), or the layout of patterns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

PLANTED = Path(__file__).resolve().parent
STRING = r"""(?<!\w)(?P<prefix>[a-zA-Z]{0,2})(?P<quote>['"])(?:\\.|(?!(?P=quote)).)*(?P=quote)"""


def rename(renames: Sequence[str]) -> int:
    """Rewrite the files next to this one and print the number of changed strings."""
    for path in sorted(PLANTED.glob("*.py")):
        source, count = path.read_bytes(), 0
        for request in renames:
            match = re.fullmatch(r"(?:(?P<address>[\w.:]+):)?(?P<old>[\w.]+)=(?P<new>[\w.]+)", request)
            if not match:
                raise SystemExit(f"{request!r} is not a rename. Write old=new or module:old=new.")
            for start, end, changed in sorted(_edits(source, **match.groupdict("")), reverse=True):
                source, count = source[:start] + changed + source[end:], count + 1
        if count:
            path.write_bytes(source)
            print(f"{path.name}: {count} strings changed")
    return 0


def _edits(source: bytes, address: str, old: str, new: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the start and end of each string literal to change, and its new source."""
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for call in ast.walk(ast.parse(source)):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id in ("Mutant", "scaled")
        ):
            literals = [part for part in call.args[1:4] if isinstance(part, ast.Constant)]
            for part in literals if literals and str(literals[0].value).startswith(address) else []:
                start = lines[part.lineno - 1] + part.col_offset
                end = lines[(part.end_lineno or 0) - 1] + (part.end_col_offset or 0)
                literal = source[start:end].decode()
                changed = (_in_address if part is literals[0] else _in_code)(literal, old, new)
                if changed != literal:
                    yield start, end, changed.encode()


def _in_address(literal: str, old: str, new: str) -> str:
    if "." in old:
        return re.sub(rf"(?<=\"){re.escape(old)}(?=[.:])", new, literal)
    module, _, name = literal.partition(":")
    return module + ":" + re.sub(rf"\b{old}\b", new, name)


def _in_code(literal: str, old: str, new: str) -> str:
    """Rename in the pattern between the quotes of a literal."""
    opening, code, closing = re.fullmatch(
        r"""(r?(?:\"{3}|"|'))(.*?)(\"{3}|"|')""", literal, re.DOTALL
    ).groups()  # type: ignore[union-attr]

    def renamed(match: re.Match[str]) -> str:
        if match["quote"] is None:
            return new
        if "f" in match["prefix"].lower():
            return re.sub(r"\{[^{}]*\}", lambda part: re.sub(rf"\b{old}\b", new, part[0]), match[0])
        return match[0]

    return opening + re.sub(rf"{STRING}|\b{re.escape(old)}\b", renamed, code, flags=re.DOTALL) + closing
