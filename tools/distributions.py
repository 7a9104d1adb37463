"""Build what a package index gets, from the files that git knows: `python -m tools.distributions dist`.

privlearn-core  the code; it predicts and verifies
privlearn       no file at all: it asks for privlearn-core with all that trains, and passes its extras on
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = "PACKAGE.md"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]*)\)")
_WHERE = (
    "(Paths in brackets, such as docs/tutorial.md, are files of the source archive: "
    "`pip download --no-deps --no-binary :all: privlearn-core`.)"
)


def build(out: Path, *settings: str) -> None:
    """Source archives and wheels of both; settings are those of `python -m build`."""
    with tempfile.TemporaryDirectory() as temporary:
        for stage in (stage_core, stage_whole):
            folder = Path(temporary) / stage.__name__
            stage(folder)
            subprocess.run(
                [sys.executable, "-m", "build", "--outdir", out.resolve(), *settings, folder], check=True
            )


def stage_core(folder: Path) -> None:
    """The tracked files, with a page for the index beside the README, whose links only work in a folder."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in tracked.stdout.split("\0")[:-1]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    described = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        described.replace('readme = "README.md"', f'readme = "{PAGE}"'), encoding="utf-8"
    )
    (folder / PAGE).write_text(index_page(), encoding="utf-8")


def stage_whole(folder: Path) -> None:
    """The same description, nothing but dependencies."""
    folder.mkdir(parents=True)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, version = settings["project"], _version()
    core = project["name"]
    extras = [name for name in project["optional-dependencies"] if name != "train"]
    left_out = ("dynamic", "scripts")
    whole = {name: value for name, value in project.items() if name not in left_out} | {
        "name": "privlearn",
        "version": version,
        "readme": PAGE,
        "dependencies": [f"{core}[train]=={version}"],
        "optional-dependencies": {extra: [f"{core}[{extra}]=={version}"] for extra in extras},
    }
    tables = {"build-system": settings["build-system"], "project": whole, "tool.setuptools": {"packages": []}}
    text = "".join(f"[{name}]\n{_lines(table)}\n" for name, table in tables.items())
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    (folder / PAGE).write_text(index_page(), encoding="utf-8")
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")


def index_page() -> str:
    """The README as a page of a package index can show it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return on_an_index(
        (ROOT / "README.md").read_text(encoding="utf-8"), project.get("urls", {}).get("Source")
    )


def on_an_index(markdown: str, address: str | None) -> str:
    """Relative links lead there to nothing: they become links to the source's address or, without one, paths."""

    def replaced(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        if address is not None:
            return f"{picture}[{text}]({address.rstrip('/')}/{path})"
        if picture:
            return f"*{text}* ({path})"
        return text if text == path else f"{text} ({path.partition('#')[0]})"

    heading, _, rest = _LINK.sub(replaced, markdown).partition("\n\n")
    return f"{heading}\n\n{rest}" if address is not None else f"{heading}\n\n{_WHERE}\n\n{rest}"


def _version() -> str:
    found: dict[str, str] = {}
    exec((ROOT / "src" / "privlearn" / "_version.py").read_text(encoding="utf-8"), found)
    return found["__version__"]


def _lines(table: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(name)} = {_toml(value)}\n" for name, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def main(arguments: Sequence[str]) -> None:
    out, *settings = arguments or ["dist"]
    build(Path(out), *settings)


if __name__ == "__main__":
    main(sys.argv[1:])
