"""Results show themselves: a verdict in words, tables in notebooks, and no file is replaced by mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, Release, verify
from privlearn.errors import InvalidParameter
from privlearn.release.html import notebook_view


@pytest.fixture(scope="module")
def release() -> Release:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    settings = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 3.0, "classes": [0, 1]}
    return PrivateLogisticRegression(**settings).fit(rows, (rows[:, 0] > 0).astype(int)).release_  # type: ignore[arg-type]


def test_a_verdict_in_words(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "m.privlearn")
    proven = verify(tmp_path / "m.privlearn")
    assert str(proven).splitlines()[0] == f"claimed     {release.certificate.guarantee}"
    assert str(proven).endswith("The file is consistent and private.")
    assert "consistent and private" in proven._repr_html_()


def test_a_file_is_replaced_on_request_only(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "m.privlearn"
    path.write_bytes(b"precious")
    with pytest.raises(InvalidParameter, match="overwrite=True"):
        release.save(path)
    assert path.read_bytes() == b"precious"
    release.save(path, overwrite=True)
    assert verify(path).is_private


def test_tables_in_notebooks(release: Release) -> None:
    for shown in (release._repr_html_(), release.certificate._repr_html_()):
        assert "epsilon = 1" in shown
        assert "objective perturbation" in shown
    assert "epsilon" in PrivateLogisticRegression(epsilon=1.0)._repr_html_()
    assert (
        repr(release)
        == f"<Release: LinearModel of {release.model.coefficients.size} coefficients, {release.certificate.headline}>"
    )


def test_words_are_no_markup() -> None:
    assert "&lt;b&gt;" in notebook_view("<b>", {"<i>": "<u>"})
    assert "<u>" not in notebook_view("", {"<i>": "<u>"})
