"""privlearn train --cluster."""

from __future__ import annotations

import pytest

from privlearn import Release
from tests.support.cli_support import Census, Run
from tests.support.dask_cluster import cluster_here

PROMISE = ("--epsilon", 1, "--delta", "1e-6", "--seed", 5)


def test_the_release_is_that_of_one_process(census: Census, train: Run) -> None:
    assert train(*PROMISE, out="here.privlearn").code == 0
    with cluster_here() as address:
        told = train(*PROMISE, "--cluster", address, out="there.privlearn")
    assert told.code == 0, told.stderr
    here, there = (Release.load(census / f"{name}.privlearn") for name in ("here", "there"))
    assert there.certificate == here.certificate


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--cluster", "tcp://10.0.0.1:8786"), "unencrypted"),
        (("--cluster", "tls://10.0.0.1:8786"), "Give ca, certificate and key"),
        (("--cluster-ca", "ca.pem"), "need a cluster"),
        (("--cluster", "tls://10.0.0.1:8786", "--search", "regularization=0.1,1"), "Omit --search"),
        (
            ("--cluster", "tls://h:1", "--cluster-ca", "a", "--cluster-cert", "b", "--cluster-key", "c"),
            "not a file",
        ),
    ],
)
def test_what_is_refused(train: Run, options: tuple[str, ...], reason: str) -> None:
    told = train(*PROMISE, *options)
    assert told.code == 2
    assert reason in " ".join(told.stderr.split())
