"""The configuration file that `tollhouse init` and `tollhouse up` write.

It is written as a draft first, and moved into place when the deployment is complete. An
interrupted `init` therefore continues with the secrets that the database may already depend on.
"""

import os
import secrets
import tomllib
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.settings import (
    DatabaseSettings,
    KeySettings,
    LedgerSettings,
    SecretSettings,
    ServerSettings,
    load,
)

OWNER_ONLY: Final = 0o600
EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not listened on

SECRET_BYTES: Final = 48
TEMPLATE: Final = """\
# The configuration of a Tollhouse deployment. Every host needs the same [secrets].
# Variables override it: TOLLHOUSE_SERVER__PORT=9000 sets port in [server].

[database]
# PostgreSQL 15 or newer. Through PgBouncer in transaction mode, read docs/guides/pooling.md first.
url = {url}
# Connections of each worker: for inference, and for Admin routes, reports and maintenance.
# pool_size = {database.pool_size}
# admin_pool_size = {database.admin_pool_size}

[server]
# Where clients connect. Put TLS in front of it before other machines use it.
# host = "{server.host}"
{port}
# The address at which clients reach the gateway. Errors link to pages below it. Change it when you
# put TLS or another host name in front; without it errors have no links.
public_url = {public_url}
# Where the platform reads /livez, /readyz and /metrics.
# probe_host = "{server.probe_host}"
{probe_port}
# Worker processes: about one for each core.
{workers}
# How long running requests may take to finish at a stop or a reload.
# drain_seconds = {server.drain_seconds}

[keys]
# The header that is accepted besides Authorization.
# customer_header = "{keys.customer_header}"
# The cell that this deployment is, if there are several. New keys name it: thp_eu1_...
# cell = "eu1"

[compatibility]
# Chat takes back what SDKs copy from an answer: `refusal`, `annotations`, `parsed`, `audio`. If
# false, a message with one of them is refused with 400, as the specification says.
accepts_own_answers = true

[ledger]
# In a sandbox, Admin keys can add credit to their organization by test payments.
{is_sandbox}

{catalog}
[secrets]
# Keep a copy of this section, but not with the database's backups.
# `master` encrypts replayable key values for 24 hours and signs report cursors. To replace it, see
# docs/guides/operating-keys.md: the present one is kept in `previous_masters` until it is unused.
master = {master}
"""


NO_CATALOG: Final = """\
# Where models are served: any server with an OpenAI-compatible API. If it needs a credential, name
# the environment variable or the file that has it; the credential itself is never in this file.
# [backends.engine]
# replicas = ["http://127.0.0.1:8000/v1"]
# api_key_variable = "ENGINE_API_KEY"

# The models that clients can use. Prices are US dollars per token, as text, and required.
# [models."example/model"]
# backend = "engine"
# context_length = 8192
# max_output_length = 4096
# pricing = { prompt = "0.0000005", completion = "0.0000015" }
"""


class ConfigurationExists(GatewayError):
    """The file exists and may be the only copy of a deployment's secrets."""

    kind = Kind.CONFLICT
    code = "configuration_exists"
    template = (
        "{self.path} exists and was not changed. To add to its deployment use `tollhouse org`, "
        "`project`, `key` and `admin-key`. --force replaces the file, and its secrets with it."
    )
    path: Path


def new_secrets() -> SecretSettings:
    """Return a random master secret."""
    return SecretSettings(master=secrets.token_urlsafe(SECRET_BYTES))


def local_url(server: ServerSettings) -> str:
    """Return the URL at which a client on this machine reaches the server."""
    host = EVERYWHERE.get(server.host, server.host)
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"


def draft_path(path: Path) -> Path:
    """Return where the file is kept until the deployment is complete."""
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
    """Write the draft of the file and return its path. Keeps the secrets of an earlier draft.

    Writes the ports and workers of `server`, and whether `ledger` is a sandbox. `public_url`
    defaults to the address on this machine, after variables of the environment were applied.
    """
    server, ledger = server or ServerSettings(), ledger or LedgerSettings()
    draft = draft_path(path)
    chosen = _stored_secrets(draft) or new_secrets()
    render = partial(
        TEMPLATE.format,
        url=_quoted(database_url),
        master=_quoted(chosen.master),
        database=DatabaseSettings(url=database_url),
        server=server,
        port=_line(server, "port"),
        probe_port=_line(server, "probe_port"),
        workers=_line(server, "workers"),
        is_sandbox=_line(ledger, "is_sandbox"),
        keys=KeySettings(),
        catalog=catalog,
    )
    written_url = public_url or local_url(server)
    _write(draft, render(public_url=_quoted(written_url)))
    address = local_url(load(draft).server)
    if public_url is None and address != written_url:
        _write(draft, render(public_url=_quoted(address)))
    return draft


def _write(draft: Path, text: str) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # The database will depend on these secrets.
        os.fsync(file.fileno())


def put_in_place(path: Path, *, force: bool) -> None:
    """Move the draft into place. Raises `ConfigurationExists` unless `force` is set."""
    if not force:
        try:
            path.touch(OWNER_ONLY, exist_ok=False)
        except FileExistsError:
            raise ConfigurationExists(path=path) from None
    draft_path(path).replace(path)


def _stored_secrets(draft: Path) -> SecretSettings | None:
    try:
        tree = tomllib.loads(draft.read_text(encoding="utf-8"))
        return msgspec.convert(tree["secrets"], SecretSettings)
    except (FileNotFoundError, tomllib.TOMLDecodeError, KeyError, msgspec.ValidationError):
        # The draft was interrupted before anything could depend on its secrets.
        return None


def _line(section: ServerSettings | LedgerSettings, name: str) -> str:
    """Return a line with the setting, as a comment if it has its default."""
    value = getattr(section, name)
    sign = "# " if value == getattr(type(section)(), name) else ""
    return f"{sign}{name} = {msgspec.json.encode(value).decode()}"


def _quoted(text: str) -> str:
    """Return the text as a TOML string, which JSON strings are too."""
    return msgspec.json.encode(text).decode()
