"""`tollhouse ledger lost`: list what a restored database has forgotten, by a log that survived."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TextIO, TypeAlias
from uuid import UUID

import click
import msgspec
from msgspec import Struct

from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.cli import output, session
from tollhouse.cli.arguments import INSTANT, example, json_option
from tollhouse.cli.session import Session
from tollhouse.contract.costs import CostAmount
from tollhouse.contract.operation import Credential
from tollhouse.contract.operations import OPERATIONS
from tollhouse.ledger import lost as ledger
from tollhouse.storage import audit

LINES_AT_ONCE: Final = 5_000
CHANGING_NOTHING: Final = frozenset(
    {"lintPolicy", "testPolicy", "lintUnsavedRule", "testUnsavedRule"}
)
CHANGES: Final = frozenset(
    operation.id
    for operation in OPERATIONS
    if operation.access.credential is Credential.ADMIN
    and operation.method != "GET"
    and operation.id not in CHANGING_NOTHING
)
ORGANIZATION_COLUMNS: Final = (
    *("organization_id", "last_admitted_at", "requests", "cost", "requests_without_cost"),
)
USAGE_COLUMNS: Final = (
    *("organization_id", "api_key_id", "model", "day", "requests", "cost"),
    *("input_tokens", "cached_input_tokens", "output_tokens"),
)
CHANGE_COLUMNS: Final = ("organization_id", "request_id", "operation", "admin_key_id", "at")


class LogLine(Struct, frozen=True, kw_only=True):
    """The fields of a request's log line that tell what was lost."""

    timestamp: datetime
    request_id: UUID
    status: int
    event: Literal["request"]
    organization_id: UUID
    key_id: UUID
    operation: str
    model: str | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost_pico_usd: int | None = None

    @property
    def is_answer(self) -> bool:
        """Whether the request was charged, or was answered at a cost that is not known yet."""
        if self.cost_pico_usd is None:
            return self.model is not None and self.status < HTTPStatus.MULTIPLE_CHOICES
        return self.cost_pico_usd > 0

    @property
    def is_change(self) -> bool:
        """Whether the request changed something by an Admin key."""
        return self.operation in CHANGES and self.status < HTTPStatus.MULTIPLE_CHOICES


class LostOrganization(Struct, frozen=True, kw_only=True):
    """An organization and the sum of what it lost. Requests without cost are not in the sum."""

    organization_id: str
    last_admitted_at: int | None
    requests: int
    cost: CostAmount
    requests_without_cost: int


class LostUsage(Struct, frozen=True, kw_only=True):
    """Lost requests of one key, model and day, as `tollhouse ledger backfill` takes them."""

    organization_id: str
    api_key_id: str
    model: str
    day: str
    requests: int
    cost: CostAmount
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int


class LostChange(Struct, frozen=True, kw_only=True):
    """A change by an Admin key that the database does not know."""

    organization_id: str
    request_id: str
    operation: str
    admin_key_id: str
    at: int


class Lost(Struct, frozen=True, kw_only=True):
    """What is in the log and not in the database."""

    object: Literal["ledger.lost"] = "ledger.lost"
    data: list[LostOrganization]
    usage: list[LostUsage]
    changes: list[LostChange]


UsageKey: TypeAlias = "tuple[UUID, str, str]"


@dataclass(kw_only=True, slots=True)
class _LostLines:
    """What one organization lost, added up line by line."""

    usage: dict[UsageKey, list[LogLine]] = field(default_factory=lambda: defaultdict(list))
    changes: list[LogLine] = field(default_factory=list[LogLine])
    without_cost: int = 0


@click.command(epilog=example("tollhouse ledger lost --since 2026-01-31T12:00:00 tollhouse.log"))
@click.option("--since", type=INSTANT, required=True, help="The restored moment, in UTC.")
@click.argument("logs", type=click.File(encoding="utf-8"), nargs=-1, required=True)
@json_option
@click.pass_obj
def lost(settings_path: Path, *, since: datetime, logs: tuple[TextIO, ...], as_json: bool) -> None:
    """List requests and changes that are in the log and not in the database.

    Run it on a restored database with the log lines of all workers since the restored moment.
    Changes nothing. What no log line tells, such as commands of operators, it cannot list.
    """
    lines = (line for log in logs for line in _read(log, since))
    found = session.run(settings_path, lambda operator: _lost(operator, lines, since))
    if as_json:
        output.show(found, as_json=True)
        return
    rows = msgspec.to_builtins(found)
    if not found.data and not found.changes:
        click.echo("The database has every request and every change that the log tells of.")
    for name, columns in (
        *(("data", ORGANIZATION_COLUMNS), ("usage", USAGE_COLUMNS)),
        *(("changes", CHANGE_COLUMNS),),
    ):
        if rows[name]:
            click.echo(f"{name if name != 'data' else 'organizations'}:")
            output.show_rows(rows[name], columns)


def _read(log: Iterable[str], moment: datetime) -> Iterator[LogLine]:
    """Yield the lines of requests with a key since the moment; other lines are skipped."""
    decoder = msgspec.json.Decoder(LogLine)
    for text in log:
        try:
            line = decoder.decode(text)
        except msgspec.DecodeError:
            continue
        # A change is committed before its line is written, a charge shortly afterwards.
        begin = moment if line.is_change else moment - ledger.SETTLING
        if (line.is_change or line.is_answer) and line.timestamp >= begin:
            yield line


async def _lost(operator: Session, lines: Iterator[LogLine], moment: datetime) -> Lost:
    found: dict[UUID, _LostLines] = defaultdict(_LostLines)
    while batch := list(islice(lines, LINES_AT_ONCE)):
        by_organization: dict[UUID, list[LogLine]] = defaultdict(list)
        for line in batch:
            by_organization[line.organization_id].append(line)
        for organization_id, own in by_organization.items():
            await _add(operator, found[organization_id], own, moment)
    return Lost(
        data=[
            await _organization(operator, *each, moment)
            for each in found.items()
            if each[1].usage or each[1].without_cost
        ],
        usage=[
            _usage(owner, key, own)
            for owner, each in found.items()
            for key, own in each.usage.items()
        ],
        changes=[_change(line) for each in found.values() for line in each.changes],
    )


async def _add(
    operator: Session, found: _LostLines, lines: Sequence[LogLine], moment: datetime
) -> None:
    """Add the lines of one organization that the database does not know."""
    owner = OrganizationId(lines[0].organization_id)
    ids = [RequestId(line.request_id) for line in lines]
    async with operator.database.transaction() as tx:
        known = await ledger.charged(tx, owner, ids, since=moment)
        known |= await audit.recorded(tx, owner, ids)
    for line in lines:
        if line.request_id in known:
            continue
        if line.is_change:
            found.changes.append(line)
        elif line.cost_pico_usd is None:
            found.without_cost += 1
        else:
            key = (line.key_id, line.model or "", f"{line.timestamp.astimezone(UTC):%Y-%m-%d}")
            found.usage[key].append(line)


async def _organization(
    operator: Session, owner: UUID, found: _LostLines, moment: datetime
) -> LostOrganization:
    async with operator.database.transaction() as tx:
        last = await ledger.last_admission(tx, OrganizationId(owner), since=moment)
    lines = [line for own in found.usage.values() for line in own]
    return LostOrganization(
        organization_id=str(owner),
        last_admitted_at=None if last is None else unix_seconds(last),
        requests=len(lines),
        cost=_sum(lines),
        requests_without_cost=found.without_cost,
    )


def _usage(owner: UUID, key: UsageKey, lines: Sequence[LogLine]) -> LostUsage:
    api_key_id, model, day = key
    return LostUsage(
        organization_id=str(owner),
        api_key_id=str(api_key_id),
        model=model,
        day=day,
        requests=len(lines),
        cost=_sum(lines),
        input_tokens=sum(line.input_tokens or 0 for line in lines),
        cached_input_tokens=sum(line.cached_input_tokens or 0 for line in lines),
        output_tokens=sum(line.output_tokens or 0 for line in lines),
    )


def _change(line: LogLine) -> LostChange:
    return LostChange(
        organization_id=str(line.organization_id),
        request_id=str(line.request_id),
        operation=line.operation,
        admin_key_id=str(line.key_id),
        at=unix_seconds(line.timestamp),
    )


def _sum(lines: Iterable[LogLine]) -> CostAmount:
    return CostAmount(
        value=to_decimal_string(PicoUsd(sum(line.cost_pico_usd or 0 for line in lines)))
    )
