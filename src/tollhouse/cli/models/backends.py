"""`tollhouse backends`: what live workers know of each replica, and leaving one out by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from tollhouse.backends import oversight
from tollhouse.backends.call_history import ReplicaUse
from tollhouse.backends.oversight import AvoidedReplica
from tollhouse.catalog import rules
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.session import Session
from tollhouse.contract.listing import ListPage
from tollhouse.storage import instances

COLUMNS: Final = (
    *("backend", "replica", "url", "model", "state", "reason", "workers", "next_trial_seconds"),
)


class ReplicaRow(Struct, frozen=True, kw_only=True):
    """A replica in one state, and how many workers have it in it.

    `model` is the backend's own name of the one model that the state is about, if not of all.
    """

    backend: str
    replica: str
    url: str
    model: str | None
    state: str
    reason: str | None
    workers: int
    next_trial_seconds: float | None


class ReplicaRows(ListPage, frozen=True, kw_only=True):
    """The replicas of all backends, in the order of the configuration."""

    data: list[ReplicaRow]


class ReplicaOrder(Struct, frozen=True, kw_only=True):
    """Whether all workers leave a replica out."""

    backend: str
    replica: str
    is_ejected: bool


@click.group("backends", epilog=example("tollhouse backends list"))
def command() -> None:
    """List the replicas of all backends, leave one out, and return it."""


@command.command("list", epilog=example("tollhouse backends list --json"))
@json_option
@click.pass_obj
def list_(settings_path: Path, *, as_json: bool) -> None:
    """List all replicas with their state in the live workers, why, and when it is tried again.

    Workers report every 5 seconds.
    """

    async def read(operator: Session) -> list[ReplicaRow]:
        async with operator.database.transaction() as tx:
            workers = await instances.live(tx)
            found = await oversight.avoided(tx, workers)
        return list(_rows(operator, found, len(workers)))

    rows = session.run(settings_path, read)
    page = ReplicaRows(data=rows, first_id=None, last_id=None, has_more=False)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command("eject", epilog=example("tollhouse backends eject engines engines-2"))
@click.argument("backend")
@click.argument("replica")
@json_option
@click.pass_obj
def eject(settings_path: Path, *, backend: str, replica: str, as_json: bool) -> None:
    """Call a replica no more, until it is returned. Calls under way go on."""
    order = ReplicaOrder(backend=backend, replica=replica, is_ejected=True)
    _order(settings_path, order, as_json=as_json)


@command.command("return", epilog=example("tollhouse backends return engines engines-2"))
@click.argument("backend")
@click.argument("replica")
@json_option
@click.pass_obj
def return_(settings_path: Path, *, backend: str, replica: str, as_json: bool) -> None:
    """Call a replica again, whether it was left out by hand or for its failures."""
    order = ReplicaOrder(backend=backend, replica=replica, is_ejected=False)
    _order(settings_path, order, as_json=as_json)


def _order(settings_path: Path, order: ReplicaOrder, *, as_json: bool) -> None:
    async def work(operator: Session) -> None:
        backend, replica = order.backend, order.replica
        if (backend, replica) not in {(name, each) for name, each, _ in _replicas(operator)}:
            message = f"There is no replica {replica!r} of a backend {backend!r} in the catalog."
            raise click.UsageError(message)
        await oversight.order(operator.database, backend, replica, is_ejected=order.is_ejected)

    session.run(settings_path, work)
    output.show(order, as_json=as_json)
    output.note(f"All workers obey within {oversight.EXCHANGE_EVERY_SECONDS:.0f} seconds.")


def _replicas(operator: Session) -> Iterator[tuple[str, str, str]]:
    """Yield the backend, name and URL of each replica."""
    settings = operator.settings
    catalog = rules.parse(settings.backends, settings.models, settings.judge)
    for name, backend in catalog.backends.items():
        for replica, url in zip(backend.replica_names, backend.replicas, strict=True):
            yield name, replica, url


def _rows(operator: Session, found: list[AvoidedReplica], workers: int) -> Iterator[ReplicaRow]:
    for backend, replica, url in _replicas(operator):
        avoided = [each for each in found if (each.backend, each.replica) == (backend, replica)]
        for each in avoided or [None]:
            yield ReplicaRow(
                backend=backend,
                replica=replica,
                url=url,
                model=each.model or None if each else None,
                state=each.state if each else ReplicaUse.IN_USE,
                reason=each.why if each else None,
                workers=each.workers if each else workers,
                next_trial_seconds=each.trial_seconds if each else None,
            )
