"""`tollhouse serve`: the service itself, until a signal ends it."""

import os

import click

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli import session
from tollhouse.cli.arguments import example
from tollhouse.cli.session import Session
from tollhouse.keys import pepper_versions
from tollhouse.observability.tracing import refuse_missing_packages
from tollhouse.serving import supervisor
from tollhouse.settings import ENVIRONMENT_PREFIX
from tollhouse.storage import master_secrets


class CannotListen(GatewayError):
    """The addresses in the configuration cannot be taken."""

    kind = Kind.UNAVAILABLE
    code = "cannot_listen"

    def __init__(self, reason: OSError) -> None:
        super().__init__(
            f"Cannot listen: {reason.strerror}. Something else may hold the port; "
            "`tollhouse doctor` tells."
        )


async def _refuse_what_workers_refuse(operator: Session) -> None:
    """They would do it one after the other, and again and again."""
    refuse_missing_packages(operator.settings.otel.endpoint)
    async with operator.database.transaction() as tx:
        await pepper_versions.verify(tx, operator.peppers)
        await master_secrets.verify(tx, operator.masters)


@click.command("serve", epilog=example("tollhouse serve --workers 4"))
@click.option("--workers", type=int, help="server.workers, for this run.")
@click.option("--host", help="server.host, for this run.")
@click.option("--port", type=int, help="server.port, for this run.")
@click.pass_context
def command(
    context: click.Context, *, workers: int | None, host: str | None, port: int | None
) -> None:
    """Run the service; refused on another schema, or with other peppers than the keys have.

    SIGTERM and SIGINT let running requests finish and end it, a second one ends it at once.
    SIGHUP reads the configuration again and replaces the workers one by one.
    """
    for name, value in {"workers": workers, "host": host, "port": port}.items():
        if value is not None:
            # Laid over the file, where a reload finds it again.
            os.environ[f"{ENVIRONMENT_PREFIX}SERVER__{name.upper()}"] = str(value)  # noqa: TID251 - handed on, not read
    session.run(context.obj, _refuse_what_workers_refuse)
    try:
        context.exit(supervisor.run(context.obj))
    except OSError as error:
        raise CannotListen(error) from error
