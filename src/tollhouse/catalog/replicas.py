"""Checking the addresses and names of replicas."""

import re
from collections.abc import Sequence
from typing import Final

from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Backend

_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~%!$&'()*+,;=:@-]*)*)",
    re.ASCII,
)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PORT_MAX: Final = 65_535


def checked(path: str, urls: Sequence[str]) -> tuple[str, ...]:
    """Return the URLs without trailing slashes.

    Raises `InvalidCatalog` without repeating a URL, which may contain a password.
    """
    first_indexes = dict[tuple[str, str, int, str], int]()
    for index, url in enumerate(urls):
        target = _target(url)
        if target is None:
            reason = (
                "not of the form http://HOST:PORT/v1 or https://HOST/v1. A URL has no credentials, "
                "query or fragment; api_key_variable or api_key_file say where a credential is."
            )
            raise InvalidCatalog(f"{path}[{index}]", reason)
        if (first := first_indexes.setdefault(target, index)) != index:
            raise InvalidCatalog(f"{path}[{index}]", f"the same address as [{first}]")
    return tuple(url.rstrip("/") for url in urls)


def names(path: str, backend_name: str, backend: Backend) -> tuple[str, ...]:
    """Return a name for each replica: the given ones, or `local-1`, `local-2` of backend `local`.

    Raises `InvalidCatalog` if a name is missing or not unique.
    """
    given = backend.replica_names
    if not given:
        return tuple(f"{backend_name}-{number + 1}" for number in range(len(backend.replicas)))
    if len(given) != len(backend.replicas):
        raise InvalidCatalog(path, f"{len(given)} names for {len(backend.replicas)} replicas")
    for index, name in enumerate(given):
        if (first := given.index(name)) != index:
            raise InvalidCatalog(f"{path}[{index}]", f"the same name as [{first}]")
    return given


def _target(url: str) -> tuple[str, str, int, str] | None:
    """Return the address in a normal form, or None if the URL is invalid."""
    found = _URL.fullmatch(url)
    if found is None:
        return None
    scheme = found["scheme"]
    port = int(found["port"] or _DEFAULT_PORTS[scheme])
    if port > _PORT_MAX:
        return None
    return scheme, found["host"].lower(), port, found["path"].rstrip("/")
