"""Every example of the documentation runs: Python blocks in this process, console blocks in a shell.

A text block is what the Python blocks before it, since the text block before, have printed.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.doc_pages import Block, blocks, page_name, pages
from tests.support.ports import free_port
from tests.support.shell_blocks import check_printed, on_port, run_console
from tests.support.waiting import run_to_end
from tests.support.warm_command import warm_command

RUNNABLE = {"python", "console"}
FEW_PEOPLE = "200"


def _is_run(block: Block) -> bool:
    """`make` needs a fresh clone, which the examples do not."""
    return block.language == "python" or (block.language == "console" and "$ make " not in block.text)


EXAMPLES = [page for page in pages() if any(map(_is_run, blocks(page)))]


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_command(tmp_path_factory.mktemp("bin")) as folder:
        yield folder


@pytest.fixture(scope="session")
def demonstration(tmp_path_factory: pytest.TempPathFactory, commands: Path) -> Path:
    """Return the files that `make demo` leaves, with fewer people."""
    folder = tmp_path_factory.mktemp("demo") / "demo-output"
    command = [str(commands / "privlearn"), "demo", "--out", str(folder), "--rows", FEW_PEOPLE]
    done = run_to_end(command)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def workplace(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Return an empty directory, with the demonstration's files if the page mentions them."""
    page: Path = request.getfixturevalue("page")
    if "$PRIVLEARN_DATA" in page.read_text(encoding="utf-8") and not os.environ.get("PRIVLEARN_DATA"):
        pytest.skip("the page reads public tables, and PRIVLEARN_DATA is not set")
    if "demo-output/" in page.read_text(encoding="utf-8"):
        shutil.copytree(request.getfixturevalue("demonstration"), tmp_path / "demo-output")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for file in tmp_path.glob("*.pid"):  # a page that failed has not stopped its server
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # Dask's read_parquet
@pytest.mark.parametrize("page", EXAMPLES, ids=page_name)
def test_the_page_s_examples_run(
    page: Path, workplace: Path, commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared: dict[str, Any] = {"__name__": "example"}
    port = free_port()
    for block in blocks(page):
        text = on_port(block.text, port)
        if block.caption is not None:
            (workplace / block.caption).write_text(text, encoding="utf-8")
        if _is_run(block) and block.language == "console":
            run_console(text, workplace, port, commands)
        elif _is_run(block):
            exec(compile(text, page_name(page), "exec"), shared)
        elif block.language == "text":
            check_printed(capsys.readouterr().out, block.text.splitlines(), page_name(page))


def test_the_main_pages_have_examples() -> None:
    """A page whose fences were misspelt would pass the test above without running anything."""
    found = {page_name(page): {block.language for block in blocks(page)} for page in pages()}
    assert found["README.md"] >= RUNNABLE
    assert "console" in found["docs/tutorial.md"]
    for way in ("non-interactive", "semi-interactive", "interactive"):
        assert found[f"docs/tutorials/{way}.md"] >= {"python", "text"}
    assert sum(map(_is_run, (block for page in pages() for block in blocks(page)))) >= 20


def test_a_console_block_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_console("$ false\n", tmp_path)
    with pytest.raises(AssertionError, match="did not print"):
        run_console("$ echo epsilon 1\nepsilon 1, delta 2\n", tmp_path)
    run_console("$ echo wrong >&2; exit 3\nwrong\n(exit code 3)\n", tmp_path)
    with pytest.raises(AssertionError):
        run_console("$ exit 2\n(exit code 3)\n", tmp_path)
    run_console("$ echo epsilon 1 && \\\n  echo more\n...\nepsilon 0.5\n", tmp_path)
