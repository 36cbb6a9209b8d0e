"""The file that `tollhouse init` writes: its text, its secrets, and how it comes into place.

It is written beside its place first. Only when the deployment stands does it move there, so that
an interrupted `init` can go on with the secrets that the database may already depend on.
"""

import os
import secrets
import tomllib
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli.getting_started import url
from tollhouse.settings import (
    DatabaseSettings,
    KeySettings,
    LedgerSettings,
    SecretSettings,
    ServerSettings,
    load,
)

SECRET_BYTES: Final = 48
OWNER_ONLY: Final = 0o600

TEMPLATE: Final = """\
# The configuration of a Tollhouse deployment. Every host needs the same [secrets].
# The environment is laid over it: TOLLHOUSE_SERVER__PORT=9000 sets port below [server].

[database]
# PostgreSQL 15 or newer, reached directly: a pooler in transaction mode does not work.
url = {url}
# Connections of each worker: for inference, and for Admin routes, reports and maintenance.
# pool_size = {database.pool_size}
# admin_pool_size = {database.admin_pool_size}

[server]
# Where clients are served. Put TLS in front of it before it leaves this machine.
# host = "{server.host}"
{port}
# The address at which clients reach the gateway. Errors link to pages below it. Change it when you
# put TLS or another host name in front; without it errors have no links.
public_url = {public_url}
# Where the platform asks /livez, /readyz and /metrics.
# probe_host = "{server.probe_host}"
{probe_port}
# Processes; about one for each core.
{workers}
# How long running requests may take to finish at a stop or a reload.
# drain_seconds = {server.drain_seconds}

[keys]
# The header that is accepted besides Authorization.
# customer_header = "{keys.customer_header}"

[ledger]
# In a sandbox Admin keys may give their organization credit by test payments.
{is_sandbox}

{catalog}
[secrets]
# Keep a copy of this section apart from the database's backups.
# `master` opens what is kept for a day to replay the creation of a key. To replace it, use
# `tollhouse secrets rotate`: it keeps the present one in `previous_masters` for a while.
master = {master}

[secrets.peppers]
# Keys are stored as digests made with the newest version. Without it they are all lost.
1 = {pepper}
"""


NO_CATALOG: Final = """\
# Where models are served: any server that speaks OpenAI's dialect. The credential, if it asks for
# one, stands in a variable of the environment or in a file, never here.
# [backends.engine]
# replicas = ["http://127.0.0.1:8000/v1"]
# api_key_variable = "ENGINE_API_KEY"

# What clients may ask for. Prices are US dollars for one token, as text: no model without them.
# [models."example/model"]
# backend = "engine"
# context_length = 8192
# max_output_length = 4096
# pricing = { prompt = "0.0000005", completion = "0.0000015" }
"""


class ConfigurationExists(GatewayError):
    """What is there may be the only copy of a deployment's secrets."""

    kind = Kind.CONFLICT
    code = "configuration_exists"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} exists and is kept as it is. To add to its deployment use `tollhouse org`, "
            "`project`, `key` and `admin-key`. --force replaces the file, and its secrets with it."
        )


def new_secrets() -> SecretSettings:
    """Random ones."""
    return SecretSettings(
        master=secrets.token_urlsafe(SECRET_BYTES),
        peppers={"1": secrets.token_urlsafe(SECRET_BYTES)},
    )


def draft_path(path: Path) -> Path:
    """Where the file stays until the deployment stands."""
    return path.with_name(f"{path.name}.partial")


def write_draft(
    path: Path,
    *,
    database_url: str,
    server: ServerSettings | None = None,
    public_url: str | None = None,
    ledger: LedgerSettings | None = None,
    catalog: str = NO_CATALOG,
) -> Path:
    """Write the file beside its place, with the secrets of an earlier try if there was one.

    Of `server` the ports and workers are written, of `ledger` whether it is a sandbox. Without a
    `public_url` it is the address on this machine, as the environment may change it.
    """
    server, ledger = server or ServerSettings(), ledger or LedgerSettings()
    draft = draft_path(path)
    chosen = _secrets_of(draft) or new_secrets()
    render = partial(
        TEMPLATE.format,
        url=_quoted(database_url),
        master=_quoted(chosen.master),
        pepper=_quoted(chosen.peppers["1"]),
        database=DatabaseSettings(url=database_url),
        server=server,
        port=_line(server, "port"),
        probe_port=_line(server, "probe_port"),
        workers=_line(server, "workers"),
        is_sandbox=_line(ledger, "is_sandbox"),
        keys=KeySettings(),
        catalog=catalog,
    )
    written_url = public_url or url(server)
    _write(draft, render(public_url=_quoted(written_url)))
    address = url(load(draft).server)
    if public_url is None and address != written_url:
        _write(draft, render(public_url=_quoted(address)))
    return draft


def _write(draft: Path, text: str) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # The database is about to depend on these secrets.
        os.fsync(file.fileno())


def put_in_place(path: Path, *, force: bool) -> None:
    """Move the draft to its place; without force nothing that is there is replaced."""
    if not force:
        try:
            path.touch(OWNER_ONLY, exist_ok=False)
        except FileExistsError:
            raise ConfigurationExists(path) from None
    draft_path(path).replace(path)


def _secrets_of(draft: Path) -> SecretSettings | None:
    try:
        tree = tomllib.loads(draft.read_text(encoding="utf-8"))
        return msgspec.convert(tree["secrets"], SecretSettings)
    except (FileNotFoundError, tomllib.TOMLDecodeError, KeyError, msgspec.ValidationError):
        # Cut off while it was written, before anything could depend on it.
        return None


def _line(section: ServerSettings | LedgerSettings, name: str) -> str:
    """A setting as it is, behind a comment sign if nothing but the default is said."""
    value = getattr(section, name)
    sign = "# " if value == getattr(type(section)(), name) else ""
    return f"{sign}{name} = {msgspec.json.encode(value).decode()}"


def _quoted(text: str) -> str:
    """JSON's strings are TOML's."""
    return msgspec.json.encode(text).decode()
