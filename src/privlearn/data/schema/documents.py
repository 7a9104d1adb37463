"""Files that people write: YAML, JSON and TOML, in which no key may be given twice."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml

from privlearn.errors import SchemaError

_YAML_SUFFIXES = {".yaml", ".yml"}


def read_document(path: str | Path) -> Any:
    """Read a YAML or JSON file, told apart by its suffix."""
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
    """Write a YAML or JSON file, told apart by its suffix."""
    path = Path(path)
    if is_yaml(path):
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        if parse_yaml(text) != content:  # rare line separators do not survive unescaped
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=False)
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
    return json.loads(text, object_pairs_hook=_unique_pairs)


def is_yaml(path: Path) -> bool:
    """True for YAML, False for JSON; any other name is refused."""
    if path.suffix.lower() in _YAML_SUFFIXES:
        return True
    if path.suffix.lower() == ".json":
        return False
    raise SchemaError(f"{path}: the name of a schema file must end in .yaml, .yml or .json")


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, which would otherwise let the last of two equal keys win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        _refuse_repeated(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, value in node.value:
            if key.tag.endswith(":int") and value.tag.endswith(":null"):  # {upper: 6,0}
                raise ValueError(
                    f"{key.value!r} stands where a name is expected: write decimals with a point, 6.0"
                )
        return super().construct_mapping(node, deep=deep)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _refuse_repeated(key for key, _ in pairs)
    return dict(pairs)


def _refuse_repeated(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {key!r} is given twice: keep one")
        seen.add(key)
