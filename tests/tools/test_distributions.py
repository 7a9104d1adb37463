"""What a package index gets: all files, no others, and a page whose links work."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from privlearn import __version__
from tests.support.doc_pages import ROOT
from tools.distributions import build, index_page, on_an_index


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(folder, "--no-isolation")
    return folder


def wheel(dist: Path, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(dist / f"{name}-{__version__}-py3-none-any.whl")


def metadata(dist: Path, name: str) -> Message:
    return message_from_bytes(wheel(dist, name).read(f"{name}-{__version__}.dist-info/METADATA"))


def test_the_wheel_holds_the_package_and_nothing_else(dist: Path) -> None:
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "privlearn").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    held = {name for name in wheel(dist, "privlearn_core").namelist() if ".dist-info/" not in name}
    assert held == expected
    assert not [name for name in wheel(dist, "privlearn").namelist() if ".dist-info/" not in name]


def test_the_source_archive_holds_documentation_and_tests(dist: Path) -> None:
    top = f"privlearn_core-{__version__}"
    with tarfile.open(dist / f"{top}.tar.gz") as archive:
        held = set(archive.getnames())
    wanted = ("LICENSE", "README.md", "docs/tutorial.md", "tests/test_imports.py", "src/privlearn/py.typed")
    assert {f"{top}/{name}" for name in wanted} <= held
    linked = set(re.findall(r"\]\(([\w/.-]+\.(?:md|svg))", (ROOT / "README.md").read_text("utf-8")))
    assert {f"{top}/{path}" for path in linked} <= held


@pytest.mark.parametrize("name", ["privlearn_core", "privlearn"])
def test_metadata_is_complete(name: str, dist: Path) -> None:
    stated = metadata(dist, name)
    assert stated["Name"] == name.replace("_", "-")
    assert stated["License-Expression"] == "Apache-2.0"
    assert stated["Description-Content-Type"] == "text/markdown"
    assert f"{name}-{__version__}.dist-info/licenses/LICENSE" in wheel(dist, name).namelist()
    for field in ("Summary", "Author", "Keywords", "Requires-Python"):
        assert stated[field]
    assert len(stated.get_all("Classifier", [])) > 10
    shown = stated.get_payload(decode=True)
    assert isinstance(shown, bytes)
    assert shown.decode() == index_page()


def test_the_whole_asks_for_the_core_and_what_trains(dist: Path) -> None:
    wanted = metadata(dist, "privlearn").get_all("Requires-Dist", [])
    assert wanted[0] == f"privlearn-core[train]=={__version__}"
    assert f'privlearn-core[service]=={__version__}; extra == "service"' in wanted
    assert "test" not in metadata(dist, "privlearn").get_all("Provides-Extra", [])


def test_no_link_of_the_page_leads_to_nothing() -> None:
    assert re.findall(r"\]\((?!https?:|#)", index_page()) == []


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("([how](docs/a.md))", "(how (docs/a.md))"),
        ("[docs/a.md](docs/a.md)", "docs/a.md"),
        ("[`plan`](docs/a.md#part)", "`plan` (docs/a.md)"),
        ("![A curve](docs/a.svg)", "*A curve* (docs/a.svg)"),
        ("[there](https://example.org/)", "[there](https://example.org/)"),
    ],
)
def test_links_without_an_address_become_paths(written: str, shown: str) -> None:
    assert on_an_index(f"# T\n\n{written}", None).endswith(f"\n\n{shown}")


def test_links_lead_to_the_source_if_it_has_an_address() -> None:
    page = on_an_index("# T\n\n[how](docs/a.md#part) ![A](b.svg)", "https://example.org/s/")
    assert page == "# T\n\n[how](https://example.org/s/docs/a.md#part) ![A](https://example.org/s/b.svg)"
