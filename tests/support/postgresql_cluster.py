"""A private PostgreSQL server in a temporary folder, reached through a socket in that folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from tests.support.waiting import COMMAND_SECONDS

# Every setting that a ledger must not inherit is set to the value that would hurt.
HOSTILE = """
default_transaction_isolation = 'repeatable read'
synchronous_commit = off
extra_float_digits = 0
"""
# Only for speed: after a crash, one sync of the disk instead of one for each of a thousand files.
USEFUL = """
listen_addresses = ''
recovery_init_sync_method = syncfs
"""


class Unavailable(Exception):
    """There is no PostgreSQL here; the text says why."""


class Cluster:
    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self.folder = folder
        self._programs = programs
        self._user = user

    def address(self, database: str, role: str) -> str:
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def new_place(self) -> str:
        """Return the address of an empty schema for a role of the same name; quicker than a database."""
        name = f"owner_{uuid4().hex}"
        self.execute(f"CREATE ROLE {name} LOGIN", f"CREATE SCHEMA AUTHORIZATION {name}")
        return self.address("postgres", name)

    def execute(self, *statements: str) -> None:
        """As the administrator."""
        with psycopg.connect(self.address("postgres", "postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def start(self, *options: str) -> None:
        self._control("start", "-l", str(self.folder / "log"), "-o", f"-k {self.folder} {' '.join(options)}")

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def _control(self, action: str, *options: str) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", action, *options)

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            user=self._user,
            group=self._user and pwd.getpwnam(self._user).pw_gid,
            extra_groups=self._user and [],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        if done.returncode:
            raise Unavailable(f"{program} failed: {(done.stderr or b'see its log').decode().strip()}")


@contextmanager
def cluster() -> Iterator[Cluster]:
    programs, user = _programs(), _user()
    folder = Path(tempfile.mkdtemp(prefix="privlearn-pg-"))  # short: the path of a socket has 107 bytes
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        server = Cluster(folder, programs, user)
        server.run("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(HOSTILE + USEFUL)
        access = folder / "data" / "pg_hba.conf"
        access.write_text("local all guarded scram-sha-256\n" + access.read_text())
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Debian keeps the server's programs out of the path, by version."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    if not found:
        raise Unavailable("PostgreSQL is not installed: run tests/install_debian.sh as root, or install it")
    return found[-1]


def _user() -> str | None:
    """PostgreSQL refuses to run as root: then as the user that its package makes."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise Unavailable("PostgreSQL does not run as root, and there is no user postgres") from None
