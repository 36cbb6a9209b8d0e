"""`tollhouse secrets status`: follow the rotation of the master secret."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse.base.clock import unix_seconds
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.keys import workers
from tollhouse.cli.keys.workers import Worker
from tollhouse.cli.session import Session
from tollhouse.storage import master_secrets
from tollhouse.storage.idempotency import SECRET_LIFETIME
from tollhouse.storage.sealing import Sealer

COLUMNS: Final = (
    *("id", "role", "writes", "data_keys", "sealed_values", "last_expires_at"),
    *("workers", "workers_live"),
)


Role = Literal["current", "previous", "not configured"]


class MasterSecret(Struct, frozen=True, kw_only=True):
    """One master secret. `writes` says whether new values are encrypted with it.

    `id` is a digest that does not reveal the secret. It is null in the row of the data keys that
    no configured secret opens.
    """

    object: Literal["master_secret"] = "master_secret"
    id: str | None
    role: Role
    writes: bool
    data_keys: int
    sealed_values: int
    last_expires_at: int | None
    workers: int
    workers_live: int


class _MasterUsage(Struct, frozen=True, kw_only=True):
    """Which secret opens each day's data key, how many values are sealed, and the live workers."""

    writing_id: str
    opening_ids: Mapping[date, str | None]
    sealed: Mapping[date, tuple[int, int]]
    live: Sequence[Worker]


class MasterSecretList(Struct, frozen=True, kw_only=True):
    """All master secrets of the configuration and of live workers."""

    object: Literal["list"] = "list"
    data: list[MasterSecret]


@click.group("secrets", epilog=example("tollhouse secrets status"))
def command() -> None:
    """Show what needs the present and the previous master secret."""


@command.command(epilog=example("tollhouse secrets status"))
@json_option
@click.pass_obj
def status(settings_path: Path, *, as_json: bool) -> None:
    """Show which master secrets the live workers accept, and what still needs each of them."""
    rows = session.run(settings_path, read_status)
    output.show_list(MasterSecretList(data=rows), COLUMNS, as_json=as_json)
    for row in removable(rows):
        output.say(
            f"\nNothing needs {row.id} any more. Remove it from secrets.previous_masters on every "
            "host, then send SIGHUP to each `tollhouse serve`.",
            as_json=as_json,
        )


async def read_status(operator: Session) -> list[MasterSecret]:
    """Return the configured master secrets, newest first, then others that are in use."""
    masters = operator.masters
    async with operator.database.transaction() as tx:
        writing_id = await master_secrets.writing_id(tx, masters)
    usage = _MasterUsage(
        writing_id=writing_id,
        opening_ids=await Sealer(operator.database, masters).opening_ids(),
        sealed=await _sealed_by_day(operator),
        live=await workers.live(operator.database),
    )
    accepted = {master_id for worker in usage.live for master_id in worker.master_ids}
    shown: list[str | None] = [*masters.ids, *sorted(accepted - set(masters.ids))]
    if None in usage.opening_ids.values():
        shown.append(None)
    return [_row(master_id, masters.ids, usage) for master_id in shown]


def _row(master_id: str | None, configured: list[str], usage: _MasterUsage) -> MasterSecret:
    days = [day for day, opening_id in usage.opening_ids.items() if opening_id == master_id]
    values = [usage.sealed[day] for day in days if day in usage.sealed]
    return MasterSecret(
        id=master_id,
        role=_role(master_id, configured),
        writes=master_id == usage.writing_id,
        data_keys=len(days),
        sealed_values=sum(count for count, _ in values),
        last_expires_at=max((expires_at for _, expires_at in values), default=None),
        workers=sum(master_id in worker.master_ids for worker in usage.live),
        workers_live=len(usage.live),
    )


def removable(rows: list[MasterSecret]) -> list[MasterSecret]:
    """Return the previous secrets that nothing stored needs, once all live workers switched."""
    if not is_accepted_by_all(rows):
        return []
    return [row for row in rows if row.role == "previous" and not row.data_keys]


def is_accepted_by_all(rows: list[MasterSecret]) -> bool:
    """Whether every live worker accepts the current secret."""
    return all(row.workers == row.workers_live for row in rows if row.role == "current")


def _role(master_id: str | None, configured: list[str]) -> Role:
    if master_id not in configured:
        return "not configured"
    return "current" if master_id == configured[0] else "previous"


async def _sealed_by_day(  # all organizations: data keys are shared
    operator: Session,
) -> Mapping[date, tuple[int, int]]:
    """Count the values that can still be replayed, by the day whose data key opens them."""
    rows = await operator.database.fetch_all(
        """
        SELECT sealed_day, count(*) AS count, max(created_at) AS last_created_at
          FROM idempotency_records
         WHERE sealed IS NOT NULL
         GROUP BY sealed_day
        """
    )
    return {
        row["sealed_day"]: (row["count"], unix_seconds(row["last_created_at"] + SECRET_LIFETIME))
        for row in rows
    }
