"""`tollhouse serve`: run the gateway until a signal ends it."""

import os

import click

from tollhouse.cli import session
from tollhouse.cli.arguments import example
from tollhouse.cli.connecting import connected
from tollhouse.cli.session import Session
from tollhouse.keys import pepper_versions
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
        await pepper_versions.verify(tx, operator.peppers)
        await master_secrets.verify(tx, operator.masters)
    async with connected(operator.settings.database) as second:
        await pooling.examine(operator.database, second)


@click.command("serve", epilog=example("tollhouse serve --workers 4"))
@click.option("--workers", type=int, help="Overrides server.workers.")
@click.option("--host", help="Overrides server.host.")
@click.option("--port", type=int, help="Overrides server.port.")
@click.pass_context
def command(
    context: click.Context, *, workers: int | None, host: str | None, port: int | None
) -> None:
    """Run the gateway. Refused if the schema or the peppers do not fit the database.

    SIGTERM and SIGINT end it after running requests have finished; a second signal ends it at
    once. SIGHUP reads the configuration again and replaces the workers one by one.
    """
    for name, value in {"workers": workers, "host": host, "port": port}.items():
        if value is not None:
            # Set in the environment, so that a reload applies it again.
            os.environ[f"{ENVIRONMENT_PREFIX}SERVER__{name.upper()}"] = str(value)  # noqa: TID251 - handed on, not read
    session.run(context.obj, _check_like_workers)
    context.exit(supervisor.run(context.obj))
