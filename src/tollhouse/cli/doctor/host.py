"""Checks of this machine: the configuration file and the addresses in it."""

import errno
import http.client
import socket
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tollhouse.base.findings import Finding, failure, ok, warning
from tollhouse.cli.deployment.configuration_file import EVERYWHERE
from tollhouse.observability.tracing import PackagesMissing, refuse_missing_packages
from tollhouse.settings import SECRET_LENGTH_MIN, Settings

ANSWER_SECONDS: Final = 2.0
ANSWER_BYTES_MAX: Final = 1_048_576


def file_mode(path: Path) -> Finding:
    """Check that only its owner can read the configuration, if it has secrets."""
    mode = stat.S_IMODE(path.stat().st_mode)
    shown = f"{path} has mode {mode:04o}"
    if not _has_secrets(path):
        return ok("file mode", f"{shown} and no secrets")
    if mode & stat.S_IROTH:
        return failure("file mode", f"{shown}: every user can read it", f"chmod 600 {path}")
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return warning("file mode", f"{shown}: other users can change it", f"chmod 600 {path}")
    return ok("file mode", shown)


def _has_secrets(path: Path) -> bool:
    """Return whether the file itself has a secret, and not only the names of files with them."""
    tree = tomllib.loads(path.read_text(encoding="utf-8"))
    stored = tree.get("secrets", {})
    is_named = {"master", "previous_masters"} & stored.keys()
    urls = (("database", "url"), ("database", "replica_url"), ("redis", "url"))
    has_url = any(field in tree.get(section, {}) for section, field in urls)
    return bool(is_named) or has_url


def secrets(settings: Settings) -> Finding:
    """Report the secrets; weak ones were refused when the settings were read."""
    previous = len(settings.secrets.previous_masters)
    masters = f"master and {previous} previous, each" if previous else "master,"
    found = f"{masters} {SECRET_LENGTH_MIN} characters or more"
    return ok("secrets", found)


def traces(settings: Settings) -> Finding:
    """Check that the packages for traces are installed if an endpoint is configured."""
    endpoint = settings.otel.endpoint
    try:
        refuse_missing_packages(endpoint)
    except PackagesMissing as error:
        found, _, remedy = str(error).partition(". ")
        return failure("traces", found, remedy)
    return ok("traces", "not sent" if endpoint is None else f"sent to {endpoint}")


def listeners(settings: Settings) -> Iterator[Finding]:
    """Check that each address is free, or used by a running Tollhouse."""
    server = settings.server
    yield _listener("listener", server.host, server.port, "/v1")
    yield _listener("probe listener", server.probe_host, server.probe_port, "/metrics")


def _listener(check: str, host: str, port: int, path: str) -> Finding:
    shown = f"{host}, port {port}"
    try:
        _bind(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            found = f"{shown} cannot be used: {error.strerror}"
            return failure(check, found, "Change [server] in the configuration.")
        if _is_tollhouse(host, port, path):
            return ok(check, f"{shown} is used by a running Tollhouse")
        found = f"{shown} is used by another program"
        return failure(check, found, "Stop that program, or change [server] in the configuration.")
    return ok(check, f"{shown} is free")


def _bind(host: str, port: int) -> None:
    """Bind the address as the server does, but without listening for connections."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def _is_tollhouse(host: str, port: int, path: str) -> bool:
    """Return whether a Tollhouse answers: it has distinctive errors and metrics."""
    connection = http.client.HTTPConnection(
        EVERYWHERE.get(host, host), port, timeout=ANSWER_SECONDS
    )
    try:
        connection.request("GET", path)
        body = connection.getresponse().read(ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return b'"code":"unknown_url"' in body or b"tollhouse_" in body
