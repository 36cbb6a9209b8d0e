"""`tollhouse requests`: the latest requests, once or for as long as the command runs."""

import asyncio
import contextlib
from datetime import datetime
from pathlib import Path
from typing import Final, TypedDict, Unpack
from uuid import UUID

import click

from tollhouse.activity.rules import statuses
from tollhouse.activity.types import ALL_STATUSES, RecordFilter, RequestOutcome
from tollhouse.api.request_search import RequestSearch
from tollhouse.api.wire import requests as request_wire
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId, ProjectKeyId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    ERROR_CODE,
    IDENTIFIER,
    INSTANT,
    MODEL,
    POLICY,
    STATUS,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.requests.following import RequestFollower
from tollhouse.cli.requests.reading import FoundRequests, latest
from tollhouse.cli.requests.views import COLUMNS, listed, show_followed, show_gaps
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX

POLL_SECONDS: Final = 1.0


class _Filters(TypedDict):
    """The options that choose requests."""

    status: str | None
    error_code: str | None
    outcome: str | None
    project: UUID | None
    key: UUID | None
    model: str | None
    policy: PolicyId | None
    since: datetime | None
    until: datetime | None


@click.command(
    "requests",
    epilog=example("tollhouse requests --status 5xx --limit 50", "tollhouse requests --follow"),
)
@organization_option
@click.option("--status", type=STATUS, help="A status such as 503, or a class such as 5xx.")
@click.option("--error-code", type=ERROR_CODE, help="Only requests with this error code.")
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in RequestOutcome]),
    help="Only requests that ended so.",
)
@click.option("--project", type=IDENTIFIER, help="Only requests of this project.")
@click.option("--key", type=IDENTIFIER, help="Only requests with this project key.")
@click.option("--model", type=MODEL, help="Only requests for this model.")
@click.option(
    "--policy",
    type=POLICY,
    help="Only requests on which this policy matched or could not be evaluated.",
)
@click.option("--from", "since", type=INSTANT, help="Only requests that began then or later, UTC.")
@click.option("--to", "until", type=INSTANT, help="Only requests that began before then, UTC.")
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_SIZE_MAX),
    default=PAGE_SIZE_DEFAULT,
    help="The most requests to show; with --follow, the most to begin with.",
)
@click.option("--follow", is_flag=True, help="Go on with new requests until you press Ctrl+C.")
@json_option
@click.pass_obj
def requests(
    settings_path: Path,
    *,
    organization: UUID | None,
    limit: int,
    follow: bool,
    as_json: bool,
    **filters: Unpack[_Filters],
) -> None:
    """List the latest requests, newest first. `tollhouse request ID` shows one in full.

    With --follow the oldest is first, new requests follow when they end, and --json prints one
    document per line.
    """
    if follow and filters["until"] is not None:
        message = "--follow has no end: leave out --to."
        raise click.UsageError(message)
    search = _search(filters)

    async def read(operator: Session) -> FoundRequests:
        owner = await operator.organization(organization)
        return await operator.read(lambda database: latest(database, owner.id, search, limit=limit))

    async def follow_on(operator: Session) -> None:
        owner = await operator.organization(organization)
        await _follow(operator, owner.id, search, limit=limit, as_json=as_json)

    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            session.run(settings_path, follow_on)
        return
    found = session.run(settings_path, read)
    if as_json:
        body = request_wire.record_list(found.page, found.blocked, found.gaps)
        output.show_list(body, COLUMNS, as_json=True)
    else:
        output.show_list(listed(found), COLUMNS, as_json=False)
        show_gaps(found.gaps)


def _search(filters: _Filters) -> RequestSearch:
    status, project, key = filters["status"], filters["project"], filters["key"]
    outcome = filters["outcome"]
    only = RecordFilter(
        statuses=ALL_STATUSES if status is None else statuses(status),
        project_id=None if project is None else ProjectId(project),
        api_key_id=None if key is None else ProjectKeyId(key),
        model=filters["model"],
        error_code=filters["error_code"],
        outcome=None if outcome is None else RequestOutcome(outcome),
        start=filters["since"],
        end=filters["until"],
    )
    return RequestSearch(only=only, policy_id=filters["policy"])


async def _follow(
    operator: Session,
    organization_id: OrganizationId,
    search: RequestSearch,
    *,
    limit: int,
    as_json: bool,
) -> None:
    """Show the latest requests and then every new one. Ends when the command is interrupted."""
    follower = RequestFollower(operator.database, operator.clock, organization_id, search)
    show_followed(await follower.first(limit=limit), as_json=as_json)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        show_followed(await follower.following(), as_json=as_json)
