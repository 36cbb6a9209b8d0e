"""A PostgreSQL server for one trial, from the binaries that are installed on this machine."""

import os
import pwd
import re
import secrets
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from urllib.parse import urlsplit

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli.trial.folder import Server

HOST: Final = "127.0.0.1"
ROLE: Final = "tollhouse"
DATABASE: Final = "tollhouse"
VERSION_MIN: Final = 15
START_SECONDS: Final = 60
FOLDERS: Final = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
"""Where Debian, Fedora and PostgreSQL's own build install binaries that are not on the path."""
ACCOUNTS: Final = ("postgres", "nobody")
ROOTS_FOLDER: Final = "/var/tmp"  # noqa: S108 - the folder in it is made for one account only
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")


class PostgresMissing(GatewayError):
    """No database address was given and no usable PostgreSQL is installed."""

    kind = Kind.UNAVAILABLE
    code = "postgres_missing"
    template = (
        f"PostgreSQL {VERSION_MIN} or newer is not installed on this machine. Install it "
        "and run this again:\n"
        "  Debian, Ubuntu   sudo apt-get install postgresql\n"
        "  Fedora           sudo dnf install postgresql-server\n"
        "or name an existing server on which your role may create a database:\n"
        "  tollhouse up --database-url postgresql://ROLE:PASSWORD@HOST:5432/tollhouse"
    )


class PostgresFailed(GatewayError):
    """A PostgreSQL program exited with an error."""

    kind = Kind.UNAVAILABLE
    code = "postgres_failed"
    template = "PostgreSQL's {self.program} failed: {self.error_output}"
    program: str
    error_output: str


def plan(beside: Path, *, port: int) -> tuple[Server, str]:
    """Create the folder of a new server. Return the server and the URL that it will have."""
    binaries = _find_binaries()
    account = _account()
    server = Server(
        folder=str(_folder(beside, account)), binaries=str(binaries), account=account, port=port
    )
    password = secrets.token_urlsafe(24)
    return server, f"postgresql://{ROLE}:{password}@{HOST}:{port}/{DATABASE}"


def create(server: Server, url: str) -> None:
    """Initialize the server's data with the role and password of the URL."""
    passwords = Path(server.folder) / "password"
    passwords.touch(0o600)
    passwords.write_text(urlsplit(url).password or "", encoding="utf-8")
    if server.account:
        shutil.chown(passwords, server.account)
    login = ("--username", ROLE, "--auth", "scram-sha-256", "--pwfile", str(passwords))
    _run(server, "initdb", "--pgdata", _data(server), "--encoding", "UTF8", "--no-locale", *login)
    passwords.unlink()


def is_running(server: Server) -> bool:
    """Return whether the server runs."""
    return Path(server.folder).exists() and _run(
        server, "pg_ctl", "--pgdata", _data(server), "status", may_fail=True
    )


def start(server: Server) -> None:
    """Start the server and return when it accepts connections."""
    options = f"-p {server.port} -c listen_addresses={HOST} -c unix_socket_directories=''"
    wait = ("--wait", "--timeout", str(START_SECONDS), "--silent")
    log = f"{server.folder}/log"
    _run(
        *(server, "pg_ctl", "--pgdata", _data(server), "--log", log, "--options", options),
        *(*wait, "start"),
    )


def stop(server: Server) -> None:
    """Stop the server and return when it has ended."""
    arguments = ("--pgdata", _data(server), "--mode", "fast", "--wait", "--silent", "stop")
    _run(server, "pg_ctl", *arguments, may_fail=True)


def remove(server: Server) -> None:
    """Delete the server's folder with its data."""
    shutil.rmtree(server.folder, ignore_errors=True)


def _find_binaries() -> Path:
    on_path = shutil.which("initdb")
    found = [Path(on_path).resolve().parent] if on_path else []
    found += [path for pattern in FOLDERS for path in sorted(Path("/").glob(pattern[1:]))]
    usable = [path for path in found if (path / "initdb").exists() and _version(path)]
    newest = max(usable, key=_version, default=None)
    if newest is None or _version(newest) < VERSION_MIN:
        raise PostgresMissing
    return newest


def _version(binaries: Path) -> int:
    try:
        printed = subprocess.check_output([binaries / "postgres", "--version"], text=True)  # noqa: S603 - PostgreSQL's own
    except (OSError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(printed)
    return int(found[1]) if found else 0


def _account() -> str | None:
    """Return the account that runs the server if this user is root: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ACCOUNTS if name in known)


def _folder(beside: Path, account: str | None) -> Path:
    """Create the server's folder, outside of root's own folders if another account needs it."""
    if account is None:
        folder = beside / "postgresql"
        folder.mkdir(mode=0o700)
        return folder
    folder = Path(mkdtemp(prefix="tollhouse-", dir=ROOTS_FOLDER))
    shutil.chown(folder, account)
    return folder


def _data(server: Server) -> str:
    return f"{server.folder}/data"


def _run(server: Server, program: str, *arguments: str, may_fail: bool = False) -> bool:
    """Run a program as the server's account. Return whether it succeeded."""
    ended = subprocess.run(  # noqa: S603 - PostgreSQL's own
        [f"{server.binaries}/{program}", *arguments],
        cwd="/",
        user=server.account,
        group=None if server.account is None else pwd.getpwnam(server.account).pw_gid,
        extra_groups=None if server.account is None else [],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode and not may_fail:
        raise PostgresFailed(program=program, error_output=(ended.stderr or ended.stdout).strip())
    return ended.returncode == 0
