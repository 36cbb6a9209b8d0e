"""`tollhouse serve`: run the gateway until a signal ends it."""

import os
from functools import partial
from pathlib import Path

import click

from tollhouse import settings as configuration
from tollhouse.cli import session
from tollhouse.cli.arguments import example
from tollhouse.cli.connecting import connected, when_reached
from tollhouse.cli.session import Session
from tollhouse.observability.tracing import refuse_missing_packages
from tollhouse.serving import supervisor
from tollhouse.settings import ENVIRONMENT_PREFIX
from tollhouse.storage import master_secrets, pooling
from tollhouse.storage.health_watch import refuse_standby


async def _check_like_workers(operator: Session) -> None:
    """Raise what every worker would raise at its start, before any is started."""
    refuse_missing_packages(operator.settings.otel.endpoint)
    await refuse_standby(operator.database)
    async with operator.database.transaction() as tx:
        await master_secrets.verify(tx, operator.masters)
    async with connected(operator.settings.database) as second:
        await pooling.examine(operator.database, second)


async def _check_when_reached(settings_path: Path) -> None:
    """Check as soon as the database is there."""
    check = partial(session.in_session, settings_path, _check_like_workers)
    await when_reached(configuration.load(settings_path).database, check)


@click.command("serve", epilog=example("tollhouse serve --workers 4"))
@click.option("--workers", type=int, help="Overrides server.workers.")
@click.option("--host", help="Overrides server.host.")
@click.option("--port", type=int, help="Overrides server.port.")
@click.pass_context
def command(
    context: click.Context, *, workers: int | None, host: str | None, port: int | None
) -> None:
    """Run the gateway. Refused if the schema or the master secret does not fit the database.

    A database that is away is awaited for `database.start_seconds`; meanwhile /livez is 200 and
    /readyz is 503.

    SIGTERM and SIGINT end it after running requests have finished; a second signal ends it at
    once. SIGHUP reads the configuration again and replaces all workers.
    """
    for name, value in {"workers": workers, "host": host, "port": port}.items():
        if value is not None:
            # Set in the environment, so that a reload applies it again.
            os.environ[f"{ENVIRONMENT_PREFIX}SERVER__{name.upper()}"] = str(value)  # noqa: TID251 - handed on, not read
    context.exit(supervisor.run(context.obj, check=partial(_check_when_reached, context.obj)))
