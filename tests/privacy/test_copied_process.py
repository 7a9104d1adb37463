"""A copy of a process draws noise and keys of its own, also if it has the same process id and OpenSSL cannot notice.

Two pid namespaces stand for a restored snapshot of a machine or a checkpointed container.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import privlearn

UNSHARE = ["unshare", "-p", "-f", "--mount-proc"]

COPY = """
import ctypes, json, os, sys, warnings
warnings.simplefilter("ignore")

def copied(before, after):
    "Return what `after` returns in the original and in a copy with the same pid."
    state = before()
    assert ctypes.CDLL(None).unshare(0x20000000) == 0  # children get a new pid namespace
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, json.dumps([os.getpid(), after(state, True)]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    print(json.dumps([[os.getpid(), after(state, False)], json.loads(os.read(reader, 1 << 20))]))
"""

DRAWS = """
import secrets
import numpy as np
from privlearn.randomness import SecureRandomness
from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.search.selection import choose_in_ball
from privlearn.mechanisms.search.partition import split_rows
from privlearn.parties.run.identity import Identity
from privlearn.parties.secure_sum.sharing import split
from privlearn.parties.secure_sum.session import KeyBook

def draws(source, is_copy):
    return {
        **{name: add(np.zeros(4), 1.0, source).tolist() for name, add in ADD_NOISE.items()},
        "bits": source.bits(64),
        "point in a ball": choose_in_ball(np.ones(3), 1.0, source).tolist(),
        "parts of a search": [part.tolist() for part in split_rows(200, 3, source)],
        "mask keys": KeyBook.generate(1).to_bytes().hex(),
        "shares of keys": hex(split(bytes(31) + b"1", 2)[1]),
        "identity": str(Identity.generate().public),
    }

def before():
    source = SecureRandomness()
    draws(source, False)
    return source

copied(before, draws)
"""

SESSION = """
import time
import numpy as np
from privlearn import Guarantee
from privlearn.estimators.kernel_learner import KernelLearner
from privlearn.sessions.interactive import InteractivePredictor

path = sys.argv[1]

def before():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    guarantee = Guarantee(1.0, 1e-6)
    learner = KernelLearner(norm_bound=3.0, classes=[0, 1], guarantee=guarantee, gamma=60.0)
    session = InteractivePredictor(learner.read(X, (X[:, 0] > 0).astype(int)), guarantee, state=path)
    session.predict(np.array([0.1, 0.2]))
    time.sleep(1.2)  # version 0.2 drew anew after a second, in both copies
    return session

def answer(session, is_copy):
    session.predict(np.array([2.9, 0.1] if is_copy else [-2.9, -0.1]))

copied(before, answer)
"""


@pytest.fixture
def unshare() -> None:
    if shutil.which("unshare") is None:
        pytest.skip("util-linux's unshare is not installed")
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("new pid namespaces need root")


def run_copies(program: str, *arguments: str) -> tuple[Any, Any]:
    ran = subprocess.run(
        [*UNSHARE, sys.executable, "-c", COPY + program, *arguments], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    (pid, original), (copied_pid, copy) = json.loads(ran.stdout)
    assert pid == copied_pid
    return original, copy


@pytest.mark.usefixtures("unshare")
def test_a_copy_repeats_no_draw() -> None:
    original, copy = run_copies(DRAWS)
    assert original.keys() == copy.keys()
    for name, drawn in original.items():
        assert drawn != copy[name], name
    for name in ("gaussian", "laplace", "norm_gamma"):
        assert not set(original[name]) & set(copy[name]), name


@pytest.mark.usefixtures("unshare")
def test_a_copied_session_answers_with_noise_of_its_own(tmp_path: Path) -> None:
    import sqlite3

    import numpy as np

    path = tmp_path / "copied.session"
    run_copies(SESSION, str(path))
    with sqlite3.connect(path) as database:
        rows = database.execute("select memory from session_answers order by number").fetchall()
    draws = [int(np.frombuffer(memory, "<i8", count=1)[0]) for (memory,) in rows]
    assert len(draws) == 3
    assert len(set(draws)) == 3


def test_no_library_generates_secret_bits_in_the_process() -> None:
    """OpenSSL's generator lives in the process; so does numpy's. Secret bits come from `secrets` or `os.urandom`."""
    allowed = {
        # The coordinator's TLS key: made once by a command's own process. A copy of it has the same owner.
        "parties/run/identity.py: ec.generate_private_key(",
    }
    root = Path(privlearn.__file__).parent
    pattern = re.compile(
        r"\w*PrivateKey\.generate\(|\w+\.generate_(?:private_)?key\(|RAND_bytes|\bopendp\.\w+ import"
    )
    uses = {
        f"{path.relative_to(root)}: {use}"
        for path in root.rglob("*.py")
        for use in pattern.findall(path.read_text(encoding="utf-8"))
    }
    assert uses == allowed
