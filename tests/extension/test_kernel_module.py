"""A module that registers a kernel, named in the holder's file: server, its training process, parties and commands."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from privlearn import Release
from privlearn.data import SchemaEncoder
from privlearn.errors import SchemaError, VerificationError
from privlearn.features import KERNELS
from privlearn.parties import KernelSettings
from privlearn.release import verify_bytes
from privlearn.server.holder import Owner
from tests.support.cli_support import Run
from tests.support.served import serving
from tests.support.service_support import SCHEMA, write_clinic

MODULE = "tests.extension.toy_kernel"
LEARNER = '[datasets.clinic.learners.toy]\nmodel = "svm"\nkernel = "toy"\n'


def forget() -> None:
    """As in a process that has not imported the module."""
    KERNELS.pop("toy", None)
    sys.modules.pop(MODULE, None)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def write(folder: Path, modules: str) -> Path:
    path = write_clinic(folder)
    path.write_text(f"{path.read_text()}\n{LEARNER}\n[extensions]\nmodules = {modules}\n")
    return path


def test_through_the_server_and_the_shell(tmp_path: Path, run: Run) -> None:
    with serving(Owner.load(write(tmp_path, f'["{MODULE}"]'))) as served:
        made = served.train("release", learner="toy", delta=1e-6)
        content = served.alice.get(f"/v1/results/{made}/content").content
    assert "'kernel': 'toy'" in str(Release.from_bytes(content).certificate.encoding)
    file = tmp_path / "toy.privlearn"
    file.write_bytes(content)
    forget()
    for command in ("verify", "inspect"):
        told = run(command, file)
        assert told.code == 1
        words = " ".join(told.stderr.split())
        assert "the kernel 'toy' is not known here" in words
        assert "--extension MODULE" in words
        assert run("--extension", MODULE, command, file).code == 0
        forget()
    with pytest.raises(VerificationError, match="the kernel 'toy' is not known"):
        verify_bytes(content)


def test_through_the_parties() -> None:
    with pytest.raises(SchemaError, match=r"must be one of linear, .*, not 'toy'"):
        KernelSettings(name="toy")
    importlib.import_module(MODULE)
    settings = KernelSettings(name="toy", fourier_pairs=5)
    assert settings.features(SchemaEncoder(SCHEMA)).dimension == 10


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ("[]", "kernel: must be one of linear"),
        ('["no_such_module"]', "the extension no_such_module cannot be imported"),
        ('["broken"]', r"the extension broken fails while it is imported \(ZeroDivisionError"),
        ("[3]", "modules"),
        ('"toy"', "modules"),
    ],
)
def test_what_cannot_be_loaded_is_said(
    tmp_path: Path, run: Run, modules: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = write(tmp_path, modules)
    with pytest.raises(SchemaError, match=reason):
        Owner.load(path)
    told = run("serve", path)
    assert told.code == 1
    assert "Traceback" not in told.stderr
