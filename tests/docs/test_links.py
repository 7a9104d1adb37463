"""Links between pages lead somewhere, headings included, and no file names a machine or a package index."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.doc_pages import ROOT, page_name, pages, without_blocks

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
CITED_PAGE = re.compile(r"docs/theory/\w+\.md")
HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
# Assembled from parts, so that this file does not contain what it forbids.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"/" + "root/",
            r"(?<![\w./])/" + "work/",
            r"/" + "home/",
            "pypi" + r"\.",
            "python" + r"hosted",
            "--index" + "-url",
        ]
    )
)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of headings, as MyST and GitHub make them, and those that are written out."""
    text = page.read_text(encoding="utf-8")
    headings = (heading.lower() for heading in HEADING.findall(text))
    written = re.findall(r'<a id="([\w-]+)"></a>', text)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in headings} | {*written}


def _tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git clone: there is no list of the project's files")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_relative_links_resolve(page: Path) -> None:
    for link in LINK.findall(without_blocks(page)):
        path, _, anchor = link.partition("#")
        target = page if not path else (page.parent / path).resolve()
        assert target.exists(), f"{page_name(page)} links to {link}"
        assert not anchor or anchor in _anchors(target), f"{page_name(page)} links to {link}"


def test_theory_pages_that_code_cites_exist() -> None:
    for source in (ROOT / "src").rglob("*.py"):
        for cited in CITED_PAGE.findall(source.read_text(encoding="utf-8")):
            assert (ROOT / cited).is_file(), f"{page_name(source)} cites {cited}"


def test_no_file_names_a_machine_or_a_package_index() -> None:
    guilty = [
        page_name(path)
        for path in _tracked_files()
        if FORBIDDEN.search(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert guilty == []
