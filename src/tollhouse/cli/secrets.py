"""`tollhouse secrets`: replacing the master secret while the service runs."""

from pathlib import Path
from secrets import token_urlsafe
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse.cli import master_status, output, secrets_file, session
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.configuration import SECRET_BYTES
from tollhouse.cli.master_status import MasterSecret
from tollhouse.storage.master_secrets import MasterSecrets

COLUMNS: Final = (
    *("id", "role", "writes", "data_keys", "sealed_values", "last_expires_at"),
    *("workers", "workers_live"),
)
NEXT_STEPS: Final = """\
Both secrets are accepted from now on. What is left to do:
1. Keep a copy of the file where you keep the other secrets.
2. Give every host the same master and previous_masters.
3. Send SIGHUP to each `tollhouse serve`. The new secret is used when every live worker accepts it.
4. See `tollhouse secrets status`, until no data key needs the previous secret.
5. Remove previous_masters on every host, and send SIGHUP again."""


class MasterRotated(Struct, frozen=True, kw_only=True):
    """The secrets of the file, by ID. Values are not shown."""

    object: Literal["master_secret.rotated"] = "master_secret.rotated"
    config: str
    id: str
    previous_ids: list[str]


class MasterSecretList(Struct, frozen=True, kw_only=True):
    """All master secrets that the configuration or a live worker has."""

    object: Literal["list"] = "list"
    data: list[MasterSecret]


@click.group("secrets", epilog=example("tollhouse secrets status"))
def command() -> None:
    """Replace the master secret, and see what still needs the previous one."""


@command.command(epilog=example("tollhouse secrets rotate"))
@json_option
@click.pass_obj
def rotate(settings_path: Path, *, as_json: bool) -> None:
    """Write a new master secret into the configuration file, and keep the present as previous."""
    written = secrets_file.replace_master(settings_path, token_urlsafe(SECRET_BYTES))
    master_id, *previous_ids = MasterSecrets(written.master_bytes()).ids
    rotated = MasterRotated(config=str(settings_path), id=master_id, previous_ids=previous_ids)
    output.show(rotated, as_json=as_json)
    output.say(f"\n{NEXT_STEPS}", as_json=as_json)


@command.command(epilog=example("tollhouse secrets status"))
@json_option
@click.pass_obj
def status(settings_path: Path, *, as_json: bool) -> None:
    """Show which master secrets the live workers accept, and what still needs each of them."""
    rows = session.run(settings_path, master_status.read)
    output.show_list(MasterSecretList(data=rows), COLUMNS, as_json=as_json)
    for row in master_status.removable(rows):
        output.say(
            f"\nNothing needs {row.id} any more. Remove it from secrets.previous_masters on every "
            "host, then send SIGHUP to each `tollhouse serve`.",
            as_json=as_json,
        )
