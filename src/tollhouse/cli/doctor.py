"""`tollhouse doctor`: looks at everything a deployment stands on, and changes nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse import settings as configuration
from tollhouse.cli import (
    catalog_checks,
    database_checks,
    deployment_checks,
    host_checks,
    output,
    progress,
    redis_checks,
)
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.connecting import ConnectingFailed, explained
from tollhouse.cli.findings import Finding, Outcome, failure, ok
from tollhouse.cli.session import Session, opened
from tollhouse.settings import InvalidSettings, Settings

COLUMNS: Final = ("check", "outcome", "found", "remedy")
CHECKS_MIN: Final = 24
"""When nothing fails; and one for each backend."""

DEPLOYMENT_CHECKS: Final[tuple[Callable[[Session], Awaitable[Finding]], ...]] = (
    deployment_checks.peppers,
    deployment_checks.master_secret,
    deployment_checks.live_workers,
    deployment_checks.leases,
    deployment_checks.ledger_days,
    deployment_checks.request_days,
    deployment_checks.decision_days,
    deployment_checks.data_keys,
    deployment_checks.sealed_values,
)


class Report(Struct, frozen=True, kw_only=True):
    """All that was looked at. A check that an earlier failure makes impossible is left out."""

    object: Literal["doctor"] = "doctor"
    healthy: bool
    data: list[Finding]


@click.command("doctor", epilog=example("tollhouse doctor --json"))
@json_option
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Check a deployment, change nothing.

    Looks at the configuration, every replica of the backends, Redis, the database and the workers.
    Every warning and failure says what to do; the exit code is 1 if there is a failure.
    """
    # A finding says what the log line of a failed call would say.
    logging.getLogger("tollhouse").addHandler(logging.NullHandler())
    findings: list[Finding] = []
    with progress.bars(as_json=as_json) as bars:
        task = bars.add_task("checking", total=CHECKS_MIN)

        def note(finding: Finding) -> None:
            findings.append(finding)
            bars.update(task, advance=1, total=max(CHECKS_MIN, len(findings)))

        _examine(context.obj, note)
    is_healthy = all(finding.outcome is not Outcome.FAILURE for finding in findings)
    report = Report(healthy=is_healthy, data=findings)
    output.show_list(report, COLUMNS, as_json=as_json)
    context.exit(0 if is_healthy else 1)


def _examine(path: Path, note: Callable[[Finding], None]) -> None:
    try:
        settings = configuration.load(path)
    except InvalidSettings as error:
        note(failure("settings", str(error), "Correct the file; nothing else was checked."))
        return
    note(ok("settings", f"{path} can be read"))
    note(host_checks.file_mode(path))
    note(host_checks.secrets(settings))
    note(host_checks.traces(settings))
    for finding in host_checks.listeners(settings):
        note(finding)
    asyncio.run(_examine_others(settings, note))


async def _examine_others(settings: Settings, note: Callable[[Finding], None]) -> None:
    async for finding in catalog_checks.findings(settings):
        note(finding)
    note(await redis_checks.redis(settings.redis))
    await _examine_database(settings, note)


async def _examine_database(settings: Settings, note: Callable[[Finding], None]) -> None:
    try:
        with explained(settings.database.url):
            async for finding in _database_findings(settings):
                note(finding)
    except ConnectingFailed as error:
        note(failure("database", error.found, error.remedy))


async def _database_findings(settings: Settings) -> AsyncIterator[Finding]:
    async with opened(settings) as operator:
        database = operator.database
        yield ok("database", "reached")
        yield await database_checks.pooling(settings.database)
        yield await database_checks.version(database)
        yield await database_checks.clock_difference(database, operator.clock)
        yield await database_checks.durability(database)
        yield await database_checks.connections(database, settings)
        schema = await database_checks.revision(database)
        yield schema
        if schema.outcome is Outcome.OK:
            for check in DEPLOYMENT_CHECKS:
                yield await check(operator)
