"""Read and write files that people edit: YAML, JSON and TOML; equal keys are refused."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml

from privlearn.errors import SchemaError

_YAML_SUFFIXES = {".yaml", ".yml"}
_AMBIGUOUS = re.compile(
    r"[-+]?(0[0-9_]+|[0-9]+(:[0-9]+)+(\.[0-9]*)?|(?=[0-9.]*_)[0-9][0-9_]*(\.[0-9_]*)?|0b[01_]+)"
)
MAX_DEPTH = 50  # levels; a schema or a settings file has no more than ten
_TOO_DEEP = f"it is nested more than {MAX_DEPTH} levels deep"


def read_document(path: str | Path) -> Any:
    """Read a YAML or JSON file, by its suffix."""
    path = Path(path)
    yaml_expected = is_yaml(path)
    try:
        text = path.read_text(encoding="utf-8")
        return parse_yaml(text) if yaml_expected else parse_json(text)
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SchemaError(f"{path} is not valid {'YAML' if yaml_expected else 'JSON'}: {error}") from error


def write_document(path: str | Path, content: dict[str, Any]) -> None:
    """Write a YAML or JSON file, by its suffix."""
    path = Path(path)
    if is_yaml(path):
        text = yaml.dump(content, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True)
        if parse_yaml(text) != content:  # rare line separators do not survive unescaped
            text = yaml.dump(content, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=False)
    else:
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SchemaError(f"{path} is not valid TOML: {error}") from None


def parse_yaml(text: str) -> Any:
    return yaml.load(text, Loader=_UniqueKeyLoader)


def parse_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique_pairs)
    except RecursionError:
        pass
    raise ValueError(_TOO_DEEP)


def is_yaml(path: Path) -> bool:
    """Return True for YAML, False for JSON; refuse any other name."""
    if path.suffix.lower() in _YAML_SUFFIXES:
        return True
    if path.suffix.lower() == ".json":
        return False
    raise SchemaError(f"{path}: the name of a schema file must end in .yaml, .yml or .json")


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader with YAML 1.2's numbers, which refuses equal keys and values with two meanings.

    YAML 1.1 reads 010 as 8, 1:30 as 90 and 1_000 as 1000, and its sets have an order that differs between processes.
    """

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        if isinstance(node, yaml.ScalarNode) and node.style is None and _AMBIGUOUS.fullmatch(node.value):
            line = node.start_mark.line + 1
            raise ValueError(f"line {line}: {node.value} differs between YAML 1.1 and 1.2. Put it in quotes")
        return super().construct_scalar(node)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth = getattr(self, "_depth", 0) + 1
        if self._depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        _refuse_repeated(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, value in node.value:
            if key.tag.endswith(":int") and value.tag.endswith(":null"):  # {upper: 6,0}
                line = key.start_mark.line + 1
                raise ValueError(f"line {line}: {key.value!r} is not a name. Write decimals like 6.0")
        return super().construct_mapping(node, deep=deep)


class _QuotingDumper(yaml.SafeDumper):
    """The safe dumper, which quotes text that YAML 1.1 and 1.2 read in different ways."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _AMBIGUOUS.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_QuotingDumper.add_representer(str, _represent_text)


def _refuse_set(loader: yaml.SafeLoader, node: yaml.Node) -> None:
    raise ValueError("a !!set has no order. Write a list, [a, b]")


for _tag in ("set", "omap", "pairs"):
    _UniqueKeyLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _refuse_set)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _refuse_repeated(key for key, _ in pairs)
    return dict(pairs)


def _refuse_repeated(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {key!r} occurs twice. Keep one.")
        seen.add(key)
