"""URLs of Redis: one server, servers that Sentinels watch, or a Redis Cluster."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

DEFAULT_PORT: Final = 6379
DEFAULT_SENTINEL_PORT: Final = 26379
PORT_MAX: Final = 65535
FORMS: Final = (
    "not of the form redis://USER:PASSWORD@HOST:6379/0,"
    " redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/SERVICE/0 or"
    " redis+cluster://USER:PASSWORD@HOST:6379,HOST:6379. Write rediss instead of redis for TLS."
    " In user and password, write '@' as %40, '/' as %2F, '?' as %3F, '#' as %23."
)

URL_HOST: Final = r"(?:[A-Za-z0-9._%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
URL_OPTION: Final = r"[A-Za-z_]+=[^\s@?#&]*"
# A password with an unencoded `@`, `/`, `?` or `#` would be parsed as host, port or path, and
# appear in the library's error message.
_URL: Final = re.compile(
    r"(?P<scheme>rediss?)(?:\+(?P<mode>sentinel|cluster))?://"
    r"(?P<userinfo>[^\s@/?#\[\]]*@)?"
    rf"(?P<hosts>{URL_HOST}(?:,{URL_HOST})*)"
    r"(?P<path>/[^\s@?#]*)?"
    rf"(?:\?(?P<options>{URL_OPTION}(?:&{URL_OPTION})*))?",
    re.ASCII,
)
_DATABASE_PATH: Final = re.compile(r"(?:/[0-9]{0,3})?")
_SERVICE_PATH: Final = re.compile(r"/(?P<service>[A-Za-z0-9._-]+)(?:/(?P<database>[0-9]{0,3}))?")
_TLS_OPTIONS: Final = frozenset(
    {
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_ciphers",
        "ssl_keyfile",
        "ssl_password",
    }
)
_SENTINEL_OPTIONS: Final = ("sentinel_username", "sentinel_password")
_OPTIONS: Final = _TLS_OPTIONS | {"client_name", "socket_keepalive"}
_CERTIFICATE_REQUIREMENTS: Final = ("none", "optional", "required")


class MalformedRedisUrl(ValueError):
    """The URL is not usable. The message says why, without a password."""


class RedisMode(StrEnum):
    """Who says which server counts: the URL, Sentinels, or the nodes of a cluster."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisUrl:
    """A parsed URL. `hosts` are the server, the Sentinels or some nodes of a cluster."""

    mode: RedisMode
    hosts: tuple[tuple[str, int], ...]
    service: str
    database: str
    is_encrypted: bool
    userinfo: str = field(repr=False)
    sentinel_userinfo: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def members(self) -> list[str]:
        """The URLs of `hosts`."""
        if self.mode is RedisMode.SENTINEL:
            return [self._url(self.sentinel_userinfo, *host, "") for host in self.hosts]
        return [self.server(*host) for host in self.hosts]

    def server(self, host: str, port: int) -> str:
        """Return the URL of a server that a Sentinel or a node has named."""
        return self._url(self.userinfo, host, port, self.database)

    def _url(self, userinfo: str, host: str, port: int, path: str) -> str:
        scheme = "rediss" if self.is_encrypted else "redis"
        shown = f"[{host}]" if ":" in host else host
        url = f"{scheme}://{userinfo}{shown}:{port}/{path}"
        return f"{url}?{urlencode(self.options)}" if self.options else url


def parse(url: str) -> RedisUrl:
    """Return the parts of a URL; raise MalformedRedisUrl."""
    found = _URL.fullmatch(url)
    if found is None:
        raise MalformedRedisUrl(FORMS)
    mode = RedisMode(found["mode"] or RedisMode.SINGLE)
    hosts = found["hosts"].split(",")
    if mode is RedisMode.SINGLE and len(hosts) > 1:
        message = "names several hosts. Use redis+sentinel:// or redis+cluster://."
        raise MalformedRedisUrl(message)
    service, database = _service_and_database(mode, found["path"] or "")
    is_encrypted = found["scheme"] == "rediss"
    options = dict(parse_qsl(found["options"] or "", keep_blank_values=True))
    _check_options(options, mode, is_encrypted=is_encrypted)
    user, password = (quote(options.pop(name, ""), safe="") for name in _SENTINEL_OPTIONS)
    return RedisUrl(
        mode=mode,
        hosts=tuple(_host_and_port(host, mode) for host in hosts),
        service=service,
        database=database,
        is_encrypted=is_encrypted,
        userinfo=found["userinfo"] or "",
        sentinel_userinfo=f"{user}:{password}@" if user or password else "",
        options=tuple(options.items()),
    )


def _host_and_port(address: str, mode: RedisMode) -> tuple[str, int]:
    default = DEFAULT_SENTINEL_PORT if mode is RedisMode.SENTINEL else DEFAULT_PORT
    found = re.fullmatch(r"(.*?)(?::([0-9]+))?", address)
    assert found is not None, "every address matches"
    host, port = found[1].strip("[]") or "localhost", int(found[2] or default)
    if not 0 < port <= PORT_MAX:
        message = f"has the port {port}, which does not exist."
        raise MalformedRedisUrl(message)
    return host, port


def _service_and_database(mode: RedisMode, path: str) -> tuple[str, str]:
    if mode is RedisMode.SENTINEL:
        named = _SERVICE_PATH.fullmatch(path)
        if named is None:
            message = "names no service. Write redis+sentinel://HOST:26379,HOST:26379/SERVICE/0."
            raise MalformedRedisUrl(message)
        return named["service"], named["database"] or "0"
    if mode is RedisMode.CLUSTER and path.strip("/") not in ("", "0"):
        message = "names a database, but a cluster has only database 0. Remove it."
        raise MalformedRedisUrl(message)
    if _DATABASE_PATH.fullmatch(path) is None:
        raise MalformedRedisUrl(FORMS)
    return "", path.removeprefix("/") or "0"


def _check_options(options: dict[str, str], mode: RedisMode, *, is_encrypted: bool) -> None:
    """Refuse what the library would refuse only when it connects."""
    allowed = _OPTIONS.union(_SENTINEL_OPTIONS if mode is RedisMode.SENTINEL else ())
    for name, value in options.items():
        if name not in allowed:
            message = f"has the unknown option {name}. Known are {', '.join(sorted(allowed))}."
            raise MalformedRedisUrl(message)
        if name in _TLS_OPTIONS and not is_encrypted:
            message = f"has the option {name}, which needs TLS. Write rediss instead of redis."
            raise MalformedRedisUrl(message)
        if name == "ssl_cert_reqs" and value not in _CERTIFICATE_REQUIREMENTS:
            message = f"has an unknown ssl_cert_reqs. Use {', '.join(_CERTIFICATE_REQUIREMENTS)}."
            raise MalformedRedisUrl(message)
