"""`tollhouse session`: who is signed in to the console, and ending it."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.api.wire import resources as wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import SessionId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import IDENTIFIER, example, json_option
from tollhouse.cli.session import Session
from tollhouse.contract.listing import ListPage
from tollhouse.sessions import service
from tollhouse.sessions.types import ConsoleSession
from tollhouse.storage.database import OPERATOR

COLUMNS: Final = ("id", "owner_id", "person_name", "organizations", "created_at", "expires_at")
LISTED_MAX: Final = 1_000


class SessionRow(Struct, frozen=True, kw_only=True):
    """An open session. `owner_id` is that of the person, or of the Admin key without a name."""

    id: str
    owner_id: str
    person_name: str | None
    organizations: list[str]
    created_at: int
    expires_at: int


class SessionRows(ListPage, frozen=True, kw_only=True):
    """Open sessions, newest first."""

    data: list[SessionRow]


@click.group("session", epilog=example("tollhouse session list"))
def command() -> None:
    """List sessions of the console, and end them."""


@command.command("list", epilog=example("tollhouse session list --json"))
@json_option
@click.pass_obj
def list_(settings_path: Path, *, as_json: bool) -> None:
    """List the open sessions of all organizations, newest first."""

    async def read(operator: Session) -> list[ConsoleSession]:
        async with operator.database.transaction() as tx:
            return await service.newest(tx, now=operator.clock.now(), limit=LISTED_MAX + 1)

    page = wire.page(SessionRows, session.run(settings_path, read), LISTED_MAX, _row)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse session end SESSION_ID"))
@click.argument("session_id", type=IDENTIFIER)
@json_option
@click.pass_obj
def end(settings_path: Path, *, session_id: UUID, as_json: bool) -> None:
    """End a session at once, in all workers. The person can sign in again."""

    async def work(operator: Session) -> ConsoleSession:
        now = operator.clock.now()
        async with operator.database.transaction() as tx:
            found = await service.find(tx, SessionId(session_id), now=now)
        await service.end(operator.database, found, now=now, actor=OPERATOR)
        return found

    output.show(_row(session.run(settings_path, work)), as_json=as_json)


def _row(found: ConsoleSession) -> SessionRow:
    return SessionRow(
        id=str(found.id),
        owner_id=str(found.owner_id),
        person_name=found.person_name,
        organizations=[str(each) for each in found.organization_ids],
        created_at=unix_seconds(found.created_at),
        expires_at=unix_seconds(found.expires_at),
    )
