"""`tollhouse limits`: how much traffic an organization, a project or a key may cause."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api import limits_wire, wire
from tollhouse.base.ids import OrganizationId
from tollhouse.base.traffic import UNLIMITED, TrafficLimits
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import (
    CONCURRENT_REQUESTS_MAX,
    REQUESTS_PER_MINUTE_MAX,
    TOKENS_PER_MINUTE_MAX,
)
from tollhouse.contract.rate_limits import RateLimitDeleted, RateLimitList
from tollhouse.limits import service
from tollhouse.limits.types import LimitPlace, Owner, RateLimit, Scope

COLUMNS: Final = ("id", "requests_per_minute", "tokens_per_minute", "concurrent_requests")


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A limit as the options name it, before the organization is known."""

    project: UUID | None
    key: UUID | None
    owner: Owner

    def place(self, organization_id: OrganizationId) -> LimitPlace:
        """The limit that is meant."""
        if self.project is not None:
            return LimitPlace(scope=Scope.PROJECT, scope_id=self.project, owner=self.owner)
        if self.key is not None:
            return LimitPlace(scope=Scope.KEY, scope_id=self.key, owner=self.owner)
        return LimitPlace(scope=Scope.ORGANIZATION, scope_id=organization_id, owner=self.owner)


def naming_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Give the verb `named`."""

    @click.option("--project", type=IDENTIFIER, help="Limit a project, not the organization.")
    @click.option("--key", type=IDENTIFIER, help="Limit a project key, not the organization.")
    @click.option(
        "--operator/--own",
        "is_operators",
        default=True,
        help="Yours, which the organization can only read; or the organization's own.",
    )
    @functools.wraps(verb)
    def naming(
        *arguments: object,
        project: UUID | None,
        key: UUID | None,
        is_operators: bool,
        **options: object,
    ) -> None:
        if project is not None and key is not None:
            message = "A limit is of a project or of a key: give --project or --key, not both."
            raise click.UsageError(message)
        owner = Owner.OPERATOR if is_operators else Owner.ORGANIZATION
        verb(*arguments, named=Named(project=project, key=key, owner=owner), **options)

    return naming


@click.group("limits", epilog=example("tollhouse limits show"))
def command() -> None:
    """Limit traffic: requests and tokens per minute, and requests at once."""


@command.command("set", epilog=example("tollhouse limits set --requests 600 --concurrent 20"))
@organization_option
@naming_options
@click.option(
    "--requests",
    type=click.IntRange(1, REQUESTS_PER_MINUTE_MAX),
    help="Requests per minute.",
)
@click.option(
    "--tokens",
    type=click.IntRange(1, TOKENS_PER_MINUTE_MAX),
    help="Tokens per minute, of prompts and answers.",
)
@click.option(
    "--concurrent",
    type=click.IntRange(1, CONCURRENT_REQUESTS_MAX),
    help="Requests at once.",
)
@json_option
@click.pass_obj
def set_(
    settings_path: Path,
    *,
    organization: UUID | None,
    named: Named,
    requests: int | None,
    tokens: int | None,
    concurrent: int | None,
    as_json: bool,
) -> None:
    """Set or replace a limit; what is left out is not limited."""
    traffic = TrafficLimits(
        requests_per_minute=requests, tokens_per_minute=tokens, concurrent_requests=concurrent
    )
    if traffic == UNLIMITED:
        message = "Give at least one of --requests, --tokens and --concurrent."
        raise click.UsageError(message)

    async def work(operator: Session) -> RateLimit:
        owner = await operator.organization(organization)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            return await service.set_limit(tx, named.place(owner.id), traffic)

    output.show(limits_wire.rate_limit(session.run(settings_path, work)), as_json=as_json)


@command.command(epilog=example("tollhouse limits show --json"))
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the limits, yours and the organization's own; of each bound the lower one holds."""

    async def read(operator: Session) -> list[RateLimit]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await service.limits(tx, owner.id, after=None, limit=LISTED_MAX + 1)

    found = session.run(settings_path, read)
    page = wire.page(RateLimitList, found, LISTED_MAX, limits_wire.rate_limit)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse limits clear"))
@organization_option
@naming_options
@json_option
@click.pass_obj
def clear(
    settings_path: Path,
    *,
    organization: UUID | None,
    named: Named,
    as_json: bool,
) -> None:
    """Remove a limit."""

    async def work(operator: Session) -> LimitPlace:
        owner = await operator.organization(organization)
        cleared = named.place(owner.id)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            await service.clear_limit(tx, cleared)
        return cleared

    cleared = session.run(settings_path, work)
    output.show(RateLimitDeleted(id=cleared.text, deleted=True), as_json=as_json)
