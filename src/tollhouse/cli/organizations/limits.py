"""`tollhouse limits`: rate limits of an organization, a project or a key."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.wire import resources as wire
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
from tollhouse.contract.bounds import (
    CONCURRENT_REQUESTS_MAX,
    REQUESTS_PER_MINUTE_MAX,
    TOKENS_PER_MINUTE_MAX,
)
from tollhouse.contract.rate_limits import RateLimitDeleted, RateLimitList
from tollhouse.limits import service
from tollhouse.limits.types import LimitId, LimitOwner, LimitScope
from tollhouse.storage.database import Mutation

COLUMNS: Final = ("id", "requests_per_minute", "tokens_per_minute", "concurrent_requests")


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitTarget:
    """The limit that the options name, before the organization is known."""

    project: UUID | None
    key: UUID | None
    owner: LimitOwner

    def limit_id(self, organization_id: OrganizationId) -> LimitId:
        """Return the ID of the limit."""
        if self.project is not None:
            return LimitId(scope=LimitScope.PROJECT, scope_id=self.project, owner=self.owner)
        if self.key is not None:
            return LimitId(scope=LimitScope.KEY, scope_id=self.key, owner=self.owner)
        return LimitId(scope=LimitScope.ORGANIZATION, scope_id=organization_id, owner=self.owner)


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that together give `target`."""

    @click.option("--project", type=IDENTIFIER, help="Limit a project, not the organization.")
    @click.option("--key", type=IDENTIFIER, help="Limit a project key, not the organization.")
    @click.option(
        "--operator/--own",
        "is_operators",
        default=True,
        help="Your limit, which the organization can only read, or the organization's own.",
    )
    @functools.wraps(command)
    def with_target(
        *arguments: object,
        project: UUID | None,
        key: UUID | None,
        is_operators: bool,
        **options: object,
    ) -> None:
        if project is not None and key is not None:
            message = "A limit applies to a project or to a key. Give --project or --key, not both."
            raise click.UsageError(message)
        owner = LimitOwner.OPERATOR if is_operators else LimitOwner.ORGANIZATION
        command(*arguments, target=LimitTarget(project=project, key=key, owner=owner), **options)

    return with_target


@click.group("limits", epilog=example("tollhouse limits show"))
def command() -> None:
    """Limit requests per minute, tokens per minute and concurrent requests."""


@command.command("set", epilog=example("tollhouse limits set --requests 600 --concurrent 20"))
@organization_option
@target_options
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
    help="Concurrent requests.",
)
@json_option
@click.pass_obj
def set_(
    settings_path: Path,
    *,
    organization: UUID | None,
    target: LimitTarget,
    requests: int | None,
    tokens: int | None,
    concurrent: int | None,
    as_json: bool,
) -> None:
    """Set or replace a limit. An option that is left out sets no limit."""
    traffic = TrafficLimits(
        requests_per_minute=requests, tokens_per_minute=tokens, concurrent_requests=concurrent
    )
    if traffic == UNLIMITED:
        message = "Give at least one of --requests, --tokens and --concurrent."
        raise click.UsageError(message)
    limit = session.change(
        settings_path,
        organization,
        lambda tx: service.set_limit(tx, target.limit_id(tx.organization_id), traffic),
    )
    output.show(wire.rate_limit(limit), as_json=as_json)


@command.command(epilog=example("tollhouse limits show --json"))
@organization_option
@json_option
@click.pass_obj
def show(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List your limits and the organization's own. The lower one of each applies."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: service.limits(tx, owner, after=None, limit=LISTED_MAX + 1),
    )
    page = wire.page(RateLimitList, found, LISTED_MAX, wire.rate_limit)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse limits clear"))
@organization_option
@target_options
@json_option
@click.pass_obj
def clear(
    settings_path: Path,
    *,
    organization: UUID | None,
    target: LimitTarget,
    as_json: bool,
) -> None:
    """Remove a limit."""

    async def clear_limit(tx: Mutation) -> LimitId:
        limit_id = target.limit_id(tx.organization_id)
        await service.clear_limit(tx, limit_id)
        return limit_id

    cleared = session.change(settings_path, organization, clear_limit)
    output.show(RateLimitDeleted(id=cleared.text, deleted=True), as_json=as_json)
