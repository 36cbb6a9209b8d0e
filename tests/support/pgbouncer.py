"""A PgBouncer of a test's own, in transaction mode, before the tests' PostgreSQL."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.cli.documents import read

SERVERS = 3
"""Fewer than a worker has connections, so that they are shared."""
ENDING_SECONDS = 30.0


def guide_lines() -> list[str]:
    """Returns the settings that the guide gives to PgBouncer."""
    lines = read("docs/guides/pooling.md").splitlines()
    return [line for line in lines if line.startswith(("pool_mode", "ignore_startup"))]


@contextmanager
def running_pgbouncer(directory: Path, database_url: str) -> Generator[str]:
    """Yields the URL of the same database behind the pooler."""
    parts = urlsplit(database_url)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    users = directory / "users.txt"
    users.write_text(f'"{parts.username}" "{parts.password or ""}"\n')
    configuration = directory / "pgbouncer.ini"
    configuration.write_text(
        "\n".join(
            [
                "[databases]",
                f"* = host={parts.hostname} port={parts.port}",
                "[pgbouncer]",
                "listen_addr = 127.0.0.1",
                f"listen_port = {port}",
                "unix_socket_dir =",
                "auth_type = trust",
                f"auth_file = {users}",
                f"default_pool_size = {SERVERS}",
                "max_client_conn = 500",
                *guide_lines(),
            ]
        )
    )
    path = f"{os.environ['PATH']}:/usr/sbin"
    program = shutil.which("pgbouncer", path=path)
    assert program is not None, "pgbouncer is not installed"
    for each in (directory, *directory.parents):
        if each.name.startswith(("pytest", "test")):
            each.chmod(0o755)
    switch = ["-u", "postgres"] if os.geteuid() == 0 else []
    process = subprocess.Popen(
        [program, *switch, str(configuration)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_port(process, port)
        yield parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
    finally:
        process.terminate()
        process.wait(ENDING_SECONDS)


def _await_port(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        assert process.poll() is None, "pgbouncer has ended"
        assert time.monotonic() < deadline
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
