"""Find a piece of Python code in a syntax tree and replace it.

A pattern is a fragment of Python: statements, an expression, or arguments such as `noise_scale=0.0`. It is compared
with the tree, so spaces, line breaks, comments and the kind of quotes do not matter. In a pattern, `...` as a statement
of a block stands for any statements; in the replacement `...` puts them back:

    with lock:          ...         removes the lock and keeps what it protects
        ...
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Fragment = list[Any]
Captures = list[list[ast.AST]]

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Site:
    """A position in a tree where a pattern matches, and the fragment to put there."""

    parent: ast.AST
    field: str
    start: int | None
    """Index of the first node if the field is a list."""
    length: int
    replacement: Fragment

    @property
    def nodes(self) -> Fragment:
        """The code that the pattern matches."""
        value = getattr(self.parent, self.field)
        return [value] if self.start is None else value[self.start : self.start + self.length]

    def replace(self) -> None:
        if self.start is None:
            [node] = self.replacement
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.start : self.start + self.length] = self.replacement


def sites(tree: ast.AST, qualified_name: str, old: str, new: str) -> list[Site]:
    """Return every position inside the named function, class or constant where `old` matches."""
    readings = _readings(old, new)
    if not readings:
        raise SyntaxError(f"a pattern and its replacement are not Python of the same kind: {old!r}, {new!r}")
    return [
        site
        for scope in _scopes(tree, qualified_name.split(".") if qualified_name else [])
        for pattern, replacement in readings
        for site in _sites_in(scope, pattern, replacement)
    ]


def find_addresses(tree: ast.AST, old: str) -> Iterator[tuple[str, int]]:
    """Yield the innermost qualified name and the line of each match of a pattern in a module."""
    owners = dict(_owners(tree, ""))
    for site in sites(tree, "", old, old):
        yield owners.get(site.parent, ""), site.nodes[0].lineno


def _owners(node: ast.AST, name: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        own = [child.name] if isinstance(child, DEFINITIONS) else []
        if isinstance(node, ast.Module | ast.ClassDef):
            own = own or _assigned_names(child)[:1]
        qualified = ".".join([name, *own] if name else own)
        yield child, qualified
        yield from _owners(child, qualified)


def changed_source(tree: ast.Module, site: Site) -> str:
    """Replace the code at `site`, which belongs to `tree`, and return the module's source."""
    site.replace()
    return ast.unparse(ast.fix_missing_locations(_Repaired().visit(tree)))


def _readings(old: str, new: str) -> list[tuple[Fragment, Fragment]]:
    """Return the fragments as expressions, else as arguments and as statements: `a=b` may be either."""
    old, new = (textwrap.dedent(text).strip() for text in (old, new))
    pairs = [
        (pattern, replacement)
        for parse in (_positional, _keywords, _statements)
        if (pattern := parse(old)) and (replacement := parse(new)) is not None
    ]
    return pairs[:1] if new and _positional(old) and _positional(new) else pairs


def _positional(text: str) -> Fragment | None:
    call = _call(text)
    return None if call is None or call.keywords else call.args


def _keywords(text: str) -> Fragment | None:
    call = _call(text)
    return None if call is None or call.args else call.keywords


def _call(text: str) -> ast.Call | None:
    try:
        call = ast.parse(f"_({text}\n)", mode="eval").body
    except SyntaxError:
        return None
    return call if isinstance(call, ast.Call) else None


def _statements(text: str) -> Fragment | None:
    try:
        return ast.parse(text).body
    except SyntaxError:
        return None


def _scopes(tree: ast.AST, names: Sequence[str]) -> Iterator[ast.AST]:
    if not names:
        yield tree
        return
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, DEFINITIONS):
            if node.name == names[0]:
                yield from _scopes(node, names[1:])
        elif names[0] in _assigned_names(node):
            yield from _scopes(node, names[1:])
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _scopes(node, names)


def _assigned_names(node: ast.AST) -> list[str]:
    match node:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _sites_in(scope: ast.AST, pattern: Fragment, replacement: Fragment) -> Iterator[Site]:
    length = len(pattern)
    for parent in ast.walk(scope):
        if isinstance(parent, ast.JoinedStr):
            continue  # the constants of an f-string are no expressions
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list) and (length == len(replacement) or not _is_paired(parent, field)):
                for start in range(len(value) - length + 1):
                    captures: Captures = []
                    if _match_each(pattern, value[start : start + length], captures):
                        yield Site(parent, field, start, length, _filled(replacement, iter(captures)))
            elif not isinstance(value, list) and length == len(replacement) == 1:
                captures = []
                if _match(pattern[0], value, captures):
                    yield Site(parent, field, None, 1, _filled(replacement, iter(captures)))


def _is_paired(parent: ast.AST, field: str) -> bool:
    """Return whether a list belongs to a second list, so that its length must not change."""
    return isinstance(parent, ast.Dict | ast.arguments) or field == "comparators"


def _match(pattern: object, node: object, captures: Captures) -> bool:
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, list) and isinstance(node, list):
        return _match_block(pattern, node, captures)
    if isinstance(pattern, ast.AST) and isinstance(node, ast.AST):
        return all(
            field == "ctx" or _match(value, getattr(node, field, None), captures)
            for field, value in ast.iter_fields(pattern)
        )
    return pattern == node


def _match_block(pattern: Fragment, nodes: Fragment, captures: Captures) -> bool:
    index = next((index for index, part in enumerate(pattern) if _is_wildcard(part)), None)
    if index is None:
        return len(pattern) == len(nodes) and _match_each(pattern, nodes, captures)
    following = len(pattern) - index - 1
    if len(nodes) < index + following:
        return False
    end = len(nodes) - following
    if not _match_each(pattern[:index], nodes[:index], captures):
        return False
    captures.append(list(nodes[index:end]))
    return _match_each(pattern[index + 1 :], nodes[end:], captures)


def _match_each(pattern: Fragment, nodes: Fragment, captures: Captures) -> bool:
    return all(_match(part, node, captures) for part, node in zip(pattern, nodes, strict=True))


def _is_wildcard(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _filled(node: Any, captures: Iterator[list[ast.AST]]) -> Any:
    """Return a copy of a replacement, with the captured statements where it has `...`, in their order."""
    if isinstance(node, list):
        blocks = [
            next(captures, [part]) if _is_wildcard(part) else [_filled(part, captures)] for part in node
        ]
        return [part for block in blocks for part in block]
    if isinstance(node, ast.AST):
        copy = type(node)(**{field: _filled(value, captures) for field, value in ast.iter_fields(node)})
        return ast.copy_location(copy, node)
    return node


class _Repaired(ast.NodeTransformer):
    """Completes what a removal leaves: an empty block, or `and` with one operand."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.BoolOp) and len(node.values) == 1:
            return node.values[0]
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node
