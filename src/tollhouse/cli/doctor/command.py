"""`tollhouse doctor`: check everything that a deployment depends on, and change nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse import settings as configuration
from tollhouse.base.findings import Finding, FindingOutcome, failure, ok
from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.connecting import ConnectingFailed, explained
from tollhouse.cli.doctor import catalog, database, deployment, host, redis
from tollhouse.cli.doctor.trial import trial
from tollhouse.cli.session import Session, opened
from tollhouse.settings import InvalidSettings, Settings

COLUMNS: Final = ("check", "outcome", "found", "remedy")
CHECKS_MIN: Final = 30
"""The number of checks that always run; each backend and model can add one."""

DEPLOYMENT_CHECKS: Final[tuple[Callable[[Session], Awaitable[Finding]], ...]] = (
    deployment.master_secret,
    deployment.live_workers,
    deployment.leases,
    deployment.ledger,
    deployment.ledger_days,
    deployment.request_days,
    deployment.decision_days,
    deployment.data_keys,
    deployment.sealed_values,
)


class DoctorReport(Struct, frozen=True, kw_only=True):
    """All findings. A check that an earlier failure makes impossible is left out."""

    object: Literal["doctor"] = "doctor"
    healthy: bool
    data: list[Finding]


@click.command("doctor", epilog=example("tollhouse doctor --json"))
@json_option
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Check a deployment and change nothing.

    Checks the configuration, every replica of the backends, Redis, the database and the workers.
    Every warning and failure says what to do. The exit code is 1 if there is a failure.
    """
    # Findings already have what the log would say about a failed call.
    logging.getLogger("tollhouse").addHandler(logging.NullHandler())
    findings: list[Finding] = []
    with output.progress_bars(as_json=as_json) as bars:
        task = bars.add_task("checking", total=CHECKS_MIN)

        def report(finding: Finding) -> None:
            findings.append(finding)
            bars.update(task, advance=1, total=max(CHECKS_MIN, len(findings)))

        _check_all(context.obj, report)
    is_healthy = all(finding.outcome is not FindingOutcome.FAILURE for finding in findings)
    document = DoctorReport(healthy=is_healthy, data=findings)
    output.show_list(document, COLUMNS, as_json=as_json)
    context.exit(0 if is_healthy else 1)


def _check_all(path: Path, report: Callable[[Finding], None]) -> None:
    try:
        settings = configuration.load(path)
    except InvalidSettings as error:
        report(failure("settings", str(error), "Correct the file. Nothing else was checked."))
        return
    has_file = path.exists()
    report(ok("settings", f"{path} can be read" if has_file else "the environment has all"))
    if (finding := trial(path)) is not None:
        report(finding)
        if finding.outcome is FindingOutcome.FAILURE:
            return
    if has_file:
        report(host.file_mode(path))
    report(host.secrets(settings))
    report(host.traces(settings))
    for finding in host.listeners(settings):
        report(finding)
    asyncio.run(_check_services(settings, report))


async def _check_services(settings: Settings, report: Callable[[Finding], None]) -> None:
    async for finding in catalog.findings(settings):
        report(finding)
    async for finding in redis.redis(settings.redis):
        report(finding)
    await _check_database(settings, report)


async def _check_database(settings: Settings, report: Callable[[Finding], None]) -> None:
    try:
        with explained(settings.database.url):
            async for finding in _database_findings(settings):
                report(finding)
    except ConnectingFailed as error:
        report(failure("database", error.found, error.remedy))


async def _database_findings(settings: Settings) -> AsyncIterator[Finding]:
    async with opened(settings) as operator:
        connected = operator.database
        yield ok("database", "reachable")
        yield await database.pooling(settings.database)
        yield await database.version(connected)
        for finding in await database.server(connected):
            yield finding
        yield await database.replica(operator)
        yield await database.connections(connected, settings)
        schema = await database.revision(connected)
        yield schema
        if schema.outcome is FindingOutcome.OK:
            for check in DEPLOYMENT_CHECKS:
                yield await check(operator)
