"""A PostgreSQL of the trial's own, from the binaries of this machine."""

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
from tollhouse.cli.trial.place import Server

HOST: Final = "127.0.0.1"
ROLE: Final = "tollhouse"
DATABASE: Final = "tollhouse"
VERSION_MIN: Final = 15
START_SECONDS: Final = 60
FOLDERS: Final = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
"""Where Debian, Fedora and PostgreSQL's own build keep what they leave out of the path."""
ACCOUNTS: Final = ("postgres", "nobody")
ROOTS_FOLDER: Final = "/var/tmp"  # noqa: S108 - the folder in it is made for one account only
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")


class PostgresMissing(GatewayError):
    """There is neither a server's address nor a server's binaries."""

    kind = Kind.UNAVAILABLE
    code = "postgres_missing"

    def __init__(self) -> None:
        super().__init__(
            f"PostgreSQL {VERSION_MIN} or newer is not installed here. Either install it and run "
            "this again:\n"
            "  Debian, Ubuntu   sudo apt-get install postgresql\n"
            "  Fedora           sudo dnf install postgresql-server\n"
            "or name a server that you have, where a database may be created:\n"
            "  tollhouse up --database-url postgresql://ROLE:PASSWORD@HOST:5432/tollhouse"
        )


class PostgresFailed(GatewayError):
    """A command of PostgreSQL's ended badly."""

    kind = Kind.UNAVAILABLE
    code = "postgres_failed"

    def __init__(self, program: str, said: str) -> None:
        super().__init__(f"PostgreSQL's {program} failed: {said.strip()}")


def plan(beside: Path, *, port: int) -> tuple[Server, str]:
    """A server that is nothing but its folder yet; the other value is where it will be."""
    binaries = _find_binaries()
    account = _account()
    server = Server(
        folder=str(_folder(beside, account)), binaries=str(binaries), account=account, port=port
    )
    password = secrets.token_urlsafe(24)
    return server, f"postgresql://{ROLE}:{password}@{HOST}:{port}/{DATABASE}"


def create(server: Server, url: str) -> None:
    """Make it, with the one role that the address names."""
    passwords = Path(server.folder) / "password"
    passwords.touch(0o600)
    passwords.write_text(urlsplit(url).password or "", encoding="utf-8")
    if server.account:
        shutil.chown(passwords, server.account)
    login = ("--username", ROLE, "--auth", "scram-sha-256", "--pwfile", str(passwords))
    _run(server, "initdb", "--pgdata", _data(server), "--encoding", "UTF8", "--no-locale", *login)
    passwords.unlink()


def start(server: Server) -> None:
    """Return when it answers; one that runs already is left alone."""
    if _run(server, "pg_ctl", "--pgdata", _data(server), "status", may_fail=True):
        return
    options = f"-p {server.port} -c listen_addresses={HOST} -c unix_socket_directories=''"
    wait = ("--wait", "--timeout", str(START_SECONDS), "--silent")
    log = f"{server.folder}/log"
    _run(
        *(server, "pg_ctl", "--pgdata", _data(server), "--log", log, "--options", options),
        *(*wait, "start"),
    )


def stop(server: Server) -> None:
    """Return when it has ended; one that does not run is no failure."""
    if Path(server.folder).exists():
        arguments = ("--pgdata", _data(server), "--mode", "fast", "--wait", "--silent", "stop")
        _run(server, "pg_ctl", *arguments, may_fail=True)


def remove(server: Server) -> None:
    """With all that was in it."""
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
        said = subprocess.check_output([binaries / "postgres", "--version"], text=True)  # noqa: S603 - PostgreSQL's own
    except (OSError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(said)
    return int(found[1]) if found else 0


def _account() -> str | None:
    """PostgreSQL refuses to run as root, so root lends it to somebody with fewer rights."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ACCOUNTS if name in known)


def _folder(beside: Path, account: str | None) -> Path:
    """Root's own folders cannot be entered by the account, so that it gets one elsewhere."""
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
    """As the account that the server belongs to, from a folder that it may enter."""
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
        raise PostgresFailed(program, ended.stderr or ended.stdout)
    return ended.returncode == 0
