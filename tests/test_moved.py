"""What version 0.1 documented works for one version more, and says where it went."""

from __future__ import annotations

import importlib
import sys

import pytest

import privlearn.data
from privlearn.data import ArrayEncoder


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("privlearn.data.simulated", ("census_schema", "simulated_census")),
        ("privlearn.release.search_certificate", ("SearchCertificate",)),
    ],
)
def test_modules(module: str, names: tuple[str, ...]) -> None:
    sys.modules.pop(module, None)
    with pytest.warns(DeprecationWarning, match=r"goes away with version 0\.3"):
        found = importlib.import_module(module)
    assert all(hasattr(found, name) for name in names)


def test_names() -> None:
    with pytest.warns(DeprecationWarning, match="ArrayEncoder now"):
        assert privlearn.data.BoundedRows is ArrayEncoder
    with pytest.raises(AttributeError, match="no attribute 'BoundRows'"):
        privlearn.data.BoundRows  # noqa: B018
