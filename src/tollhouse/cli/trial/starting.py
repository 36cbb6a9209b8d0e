"""From nothing to a running trial, in steps that a later `up` can go on from."""

import asyncio
import socket
from typing import Final

import msgspec
from rich.progress import Progress

from tollhouse import settings as configuration
from tollhouse.cli import session
from tollhouse.cli.configuration import put_in_place, write_draft
from tollhouse.cli.getting_started import url
from tollhouse.cli.migrate import watched
from tollhouse.cli.provisioning import ensure_database, refuse_taken
from tollhouse.cli.session import opened
from tollhouse.cli.trial import engines, examples, postgres, processes, stopping, telling
from tollhouse.cli.trial.place import Place, Trial
from tollhouse.cli.trial.telling import Running
from tollhouse.settings import LedgerSettings, ServerSettings
from tollhouse.storage import schema

GATEWAY: Final = "gateway"
HOST: Final = "127.0.0.1"


def start(place: Place, database_url: str | None, bars: Progress) -> Running:
    """Start what does not run; what was never finished is begun anew."""
    trial = place.read()
    if trial is not None and not place.is_complete:
        stopping.remove(place, trial)
        trial = None
    stage = bars.add_task("Starting PostgreSQL", total=None)
    trial = trial or _new(place, database_url)
    if trial.server is not None:
        postgres.start(trial.server)
    bars.update(stage, description="Starting the engine")
    trial, catalog = _engine(place, trial)
    bars.update(stage, description="Preparing the database")
    if not place.is_complete:
        asyncio.run(_fill(place, trial, catalog, bars))
    bars.update(stage, description="Starting the gateway")
    trial = _gateway(place, trial)
    return _running(place, trial, None if trial.are_keys_shown else _keys(place, trial))


def _new(place: Place, database_url: str | None) -> Trial:
    if database_url is not None:
        created = asyncio.run(ensure_database(database_url))
        trial = Trial(database_url=database_url, is_database_created=created)
        place.write(trial)
        return trial
    server, own_url = postgres.plan(place.folder, port=_free_port())
    trial = Trial(database_url=own_url, server=server)
    # First of all, so that whatever comes in between, nothing is left that nobody knows of.
    place.write(trial)
    postgres.create(server, own_url)
    return trial


def _engine(place: Place, trial: Trial) -> tuple[Trial, str]:
    if processes.is_running(trial.processes.get(engines.NAME)):
        return trial, ""
    started, catalog = engines.start(place, trial)
    place.write(started)
    return started, catalog


async def _fill(place: Place, trial: Trial, catalog: str, bars: Progress) -> None:
    await ensure_database(trial.database_url)
    draft = write_draft(
        place.settings_path,
        database_url=trial.database_url,
        server=_server(),
        ledger=LedgerSettings(is_sandbox=True),
        catalog=catalog,
    )
    async with opened(configuration.load(draft, environment={})) as operator:
        await refuse_taken(operator)
        await schema.migrate(trial.database_url, show=watched(bars))
        await examples.put(operator, bars)
    put_in_place(place.settings_path, force=False)


def _gateway(place: Place, trial: Trial) -> Trial:
    if processes.is_running(trial.processes.get(GATEWAY)):
        return trial
    path, log = place.settings_path, place.log(GATEWAY)
    process, _ = processes.start(GATEWAY, path, ["serve"], log)
    started = msgspec.structs.replace(trial, processes={**trial.processes, GATEWAY: process})
    place.write(started)
    return started


def _keys(place: Place, trial: Trial) -> telling.Keys:
    made = session.run(place.settings_path, examples.issue_keys)
    place.write(msgspec.structs.replace(trial, are_keys_shown=True))
    first, other = made.projects
    return telling.Keys(admin_key=made.admin, project_key=first, other_project_key=other)


def _running(place: Place, trial: Trial, keys: telling.Keys | None) -> Running:
    assert trial.engine is not None
    base_url = url(configuration.load(place.settings_path).server)
    model = engines.model(trial)
    return Running(
        base_url=base_url,
        console_url=f"{base_url}/console",
        model=model,
        engine=trial.engine,
        database="as you named it" if trial.server is None else trial.server.folder,
        keys=keys,
        commands=telling.commands(model),
    )


def _server() -> ServerSettings:
    """One worker, which counts limits exactly without Redis; the usual ports if they are free."""
    usual = ServerSettings()
    return ServerSettings(
        port=_free_port(usual.port), probe_port=_free_port(usual.probe_port), workers=1
    )


def _free_port(wanted: int = 0) -> int:
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return probe.getsockname()[1]
    message = "No port is free."
    raise OSError(message)
