"""S3-compatible storage as a process of its own (moto's server), in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as arrow_fs
import pyarrow.parquet as parquet
import pytest

from tests.support.ports import free_port

_PYTHON = Path(sys.prefix) / "storage" / "bin" / "python"
SECRET = "correct-horse-battery-staple"
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIAMARKEDMARKED",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True)
class Storage:
    """A storage with one bucket, ``clinic``, and a writer's way into it."""

    url: str
    files: Any

    def put(self, name: str, content: bytes) -> str:
        """Store a file and return its address."""
        with self.files.open_output_stream(f"clinic/{name}", compression=None) as stream:
            stream.write(content)
        return f"s3://clinic/{name}"

    def put_table(self, name: str, table: pa.Table) -> str:
        buffer = pa.BufferOutputStream()
        parquet.write_table(table, buffer)
        return self.put(name, buffer.getvalue().to_pybytes())


@contextmanager
def running_storage() -> Iterator[Storage]:
    if not _PYTHON.exists():
        pytest.skip("needs a storage server: `make test` installs one")
    port = free_port()
    command = [str(_PYTHON), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(f"http://127.0.0.1:{port}/moto-api/", process)
            files = arrow_fs.S3FileSystem(
                access_key="a", secret_key="b", region="eu-central-1", scheme="http",
                endpoint_override=f"127.0.0.1:{port}", allow_bucket_creation=True,
            )  # fmt: skip
            files.create_dir("clinic")
            yield Storage(f"http://127.0.0.1:{port}", files)
        finally:
            process.kill()


def _await(address: str, process: subprocess.Popen[bytes], seconds: float = 120.0) -> None:
    for _ in range(int(seconds * 10)):
        assert process.poll() is None, "the storage has ended"
        try:
            urllib.request.urlopen(address, timeout=5.0).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the storage does not answer")
