"""The numbers of the house, on a house whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import house

BOTTOM = '''def one():
    """Long.

    Text.
    """
    return 1


def two():
    import small.top

    return 2
'''
SOURCES = {
    "__init__.py": "",
    "top.py": "import small.middle\nfrom small.bottom import (\n    one,\n    two,\n)\n",
    "middle.py": "from small import bottom\n\nif TYPE_CHECKING:\n    from small import top\n",
    "bottom.py": BOTTOM,
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    small = tmp_path / "src" / "small"
    small.mkdir(parents=True)
    for name, text in SOURCES.items():
        (small / name).write_text(text)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_small.py").write_text("from small.top import one\nfrom small import bottom\n")
    return small


def test_what_is_counted(package: Path) -> None:
    found = house.measure(package)
    assert found["files"] == "4"
    assert found["lines"] == "21"
    assert found["lines of a file, median and largest"] == "4, 12"
    assert found["lines of a function, median and 90th percentile"] == "3, 4"
    assert found["share of lines that are imports"] == "38.1 %"  # 8 of 21
    assert found["longest chain of imports"] == "3"
    assert found["modules in import cycles, late imports counted"] == "3"
    assert found["function docstrings that are fragments"] == "0.0 %"
    assert found["functions named by a participle"] == "0.0 %"
    assert found["modules that tests import by path"] == "2"


def test_a_circle_is_noticed(package: Path) -> None:
    (package / "bottom.py").write_text("import small.top\n" + SOURCES["bottom.py"])
    assert house.measure(package)["longest chain of imports"] == "cyclic"


def test_a_circle_through_a_package_is_noticed(package: Path) -> None:
    """`inner.one` waits for `top`, which waits for `inner.two`, and so for the package that imports `inner.one`."""
    (package / "inner").mkdir()
    (package / "inner" / "__init__.py").write_text("from small.inner.one import ONE\n")
    (package / "inner" / "one.py").write_text("from small.top import TOP\n\nONE = 1\n")
    (package / "inner" / "two.py").write_text("TWO = 2\n")
    (package / "top.py").write_text("TOP = 0\n")
    assert house.measure(package)["longest chain of imports"].isdigit()
    (package / "top.py").write_text("from small.inner.two import TWO\n")
    assert house.measure(package)["longest chain of imports"] == "cyclic"
