"""A Dask cluster of real processes over TLS on this machine, with certificates of its own."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import Client

from privlearn.estimators import Cluster
from tests.support.waiting import until

NO_SPILLING = {
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
}


class Authority:
    """Signs certificates, and writes them into a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cluster")])
        own = self._signed(self._name, self._key.public_key(), is_authority=True)
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate, secret = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        signed = self._signed(subject, key.public_key(), is_authority=False)
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, secret

    def _signed(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        return builder.sign(self._key, hashes.SHA256())


class RunningCluster:
    """A scheduler and its workers; `close` ends them all."""

    def __init__(self, folder: Path, workers: int = 2, *, protocol: str = "tls") -> None:
        self.folder, self._protocol = folder, protocol
        self.authority = Authority(folder / "certificates")
        self.certificate, self.key = self.authority.issue("me")
        self._started = 0
        self.workers: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
        )
        until(lambda: file.exists() and file.stat().st_size > 0)
        self.address = str(json.loads(file.read_text())["address"])
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        worker = self._start(
            "worker",
            self.address,
            *("--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--no-dashboard"),
            *("--local-directory", str(self.folder / "workers")),
            **environment,
        )
        self.workers.append(worker)
        return worker

    def connect(self) -> Cluster:
        """Return a caller's connection."""
        if self._protocol == "tcp":
            return Cluster(self.address)
        return Cluster(self.address, ca=self.authority.ca, certificate=self.certificate, key=self.key)

    def logs(self) -> str:
        """Return the output of all processes."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            kill(process)

    def _start(self, role: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        self._started += 1
        name = f"{role}{self._started}"
        command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *arguments]
        if "RECORDING" in os.environ:
            command += ["--preload", str(Path(__file__).with_name("dask_recording.py"))]
        if self._protocol == "tls":
            certificate, key = self.authority.issue(name)
            command += ["--tls-ca-file", str(self.authority.ca)]
            command += ["--tls-cert", str(certificate), "--tls-key", str(key), "--protocol", "tls"]
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                env=os.environ | NO_SPILLING | {"OMP_NUM_THREADS": "1"} | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def running_cluster(folder: Path, workers: int = 2, *, protocol: str = "tls") -> Iterator[RunningCluster]:
    """Run a cluster for the length of a block; all workers are there when it begins."""
    cluster = RunningCluster(folder, workers, protocol=protocol)
    try:
        if workers:
            with cluster.connect() as connected:
                connected.client.wait_for_workers(workers, timeout=60)
        yield cluster
    finally:
        cluster.close()


def kill(process: subprocess.Popen[bytes]) -> None:
    """As `kill -9` does."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()


@contextmanager
def cluster_here() -> Iterator[str]:
    """Run a cluster inside this process and yield its address: nothing leaves it, so it needs no certificate."""
    quiet = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(quiet),
        Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client,
    ):
        yield str(client.scheduler.address)
