"""Starting and stopping a trial, in steps that a later `up` can continue."""

import asyncio
from typing import Final

import msgspec
from rich.progress import Progress

from tollhouse import settings as configuration
from tollhouse.cli import session
from tollhouse.cli.deployment.configuration_file import local_url, put_in_place, write_draft
from tollhouse.cli.deployment.migrate import progress_listener
from tollhouse.cli.deployment.provisioning import (
    claim,
    drop_database,
    ensure_database,
    refuse_taken,
)
from tollhouse.cli.trial import (
    announcement,
    engines,
    example_requests,
    examples,
    ports,
    postgres,
    processes,
)
from tollhouse.cli.trial.agents import agent_commands
from tollhouse.cli.trial.announcement import Running, ShownKeys
from tollhouse.cli.trial.folder import Server, Trial, TrialFolder
from tollhouse.settings import LedgerSettings, ServerSettings
from tollhouse.storage.migrate import migrate

GATEWAY: Final = "gateway"
POSTGRES: Final = "PostgreSQL"


def start(folder: TrialFolder, database_url: str | None, bars: Progress) -> Running:
    """Start every part that is not running. A trial that was never completed starts anew."""
    trial = folder.read()
    if trial is not None and not folder.is_complete:
        remove(folder, trial)
        trial = None
    stage = bars.add_task("Starting PostgreSQL", total=None)
    trial = trial or _new_trial(folder, database_url)
    if trial.server is not None:
        _start_postgres(trial.server)
    bars.update(stage, description="Starting the engine")
    trial, catalog = engines.start(folder, trial, bars)
    bars.update(stage, description="Preparing the database")
    if not folder.is_complete:
        asyncio.run(_deploy(folder, trial, catalog, bars))
    bars.update(stage, description="Starting the gateway")
    trial = _start_gateway(folder, trial)
    if trial.are_keys_shown:
        return _running(folder, trial, None)
    bars.update(stage, description="Sending example requests")
    _send_examples(folder)
    return _running(folder, trial, _issue_keys(folder, trial))


def stop(folder: TrialFolder, trial: Trial) -> list[str]:
    """Stop all processes in the reverse order of their start. Return the names of those that ran.

    The data is kept.
    """
    stopped: list[str] = []
    for name, process in reversed(trial.processes.items()):
        if processes.is_running(process):
            processes.stop(process)
            stopped.append(name)
    if trial.server is not None and postgres.is_running(trial.server):
        postgres.stop(trial.server)
        stopped.append(POSTGRES)
    folder.write(msgspec.structs.replace(trial, processes={}))
    return stopped


def stopped_parts(trial: Trial) -> list[str]:
    """Return the names of the processes that a running trial has and that do not run."""
    names = (*engines.names(trial), GATEWAY)
    found = [name for name in names if not processes.is_running(trial.processes.get(name))]
    if trial.server is not None and not postgres.is_running(trial.server):
        found.append(POSTGRES)
    return found


def remove(folder: TrialFolder, trial: Trial) -> None:
    """Stop the trial and delete what it made, also its database on a server that was given."""
    stop(folder, trial)
    if trial.server is not None:
        postgres.remove(trial.server)
    elif trial.is_database_created:
        asyncio.run(drop_database(trial.database_url))
    folder.clear()


def _start_postgres(server: Server) -> None:
    if not postgres.is_running(server):
        ports.require_free(server.port, used_by=POSTGRES, setting="database.url")
        postgres.start(server)


def _new_trial(folder: TrialFolder, database_url: str | None) -> Trial:
    if database_url is not None:
        created = asyncio.run(ensure_database(database_url))
        trial = Trial(database_url=database_url, is_database_created=created)
        folder.write(trial)
        return trial
    server, own_url = postgres.plan(folder.path, port=ports.free())
    trial = Trial(database_url=own_url, server=server)
    # Stored before the server is created, so that `reset` finds it after an interruption.
    folder.write(trial)
    postgres.create(server, own_url)
    return trial


async def _deploy(folder: TrialFolder, trial: Trial, catalog: str, bars: Progress) -> None:
    await ensure_database(trial.database_url)
    draft = write_draft(
        folder.settings_path,
        database_url=trial.database_url,
        server=_server(),
        ledger=LedgerSettings(is_sandbox=True),
        catalog=catalog,
    )
    async with session.opened(configuration.load(draft, environment={})) as operator:
        await refuse_taken(operator)
        await migrate(trial.database_url, show=progress_listener(bars))
        await claim(operator)
        await examples.create(operator, bars)
    put_in_place(folder.settings_path, force=False)


def _start_gateway(folder: TrialFolder, trial: Trial) -> Trial:
    if processes.is_running(trial.processes.get(GATEWAY)):
        return trial
    path, log = folder.settings_path, folder.log(GATEWAY)
    process, _ = processes.start(GATEWAY, path, ["serve"], log)
    started = msgspec.structs.replace(trial, processes={**trial.processes, GATEWAY: process})
    folder.write(started)
    return started


def _send_examples(folder: TrialFolder) -> None:
    senders = session.run(folder.settings_path, examples.issue_sender_keys)
    server = configuration.load(folder.settings_path).server
    asked = example_requests.requests(
        unknown_policy=senders.unknown_policy, withholding_policy=senders.withholding_policy
    )
    example_requests.send(server.host, server.port, senders.project_keys, asked)


def _issue_keys(folder: TrialFolder, trial: Trial) -> ShownKeys:
    issued = session.run(folder.settings_path, examples.issue_keys)
    folder.write(msgspec.structs.replace(trial, are_keys_shown=True))
    first, other = issued.projects
    return ShownKeys(admin_key=issued.admin, project_key=first, other_project_key=other)


def _running(folder: TrialFolder, trial: Trial, keys: ShownKeys | None) -> Running:
    assert trial.engine is not None
    base_url = local_url(configuration.load(folder.settings_path).server)
    model = engines.model(trial)
    return Running(
        base_url=base_url,
        console_url=f"{base_url}/console",
        docs_url=f"{base_url}/docs",
        model=model,
        engine=trial.engine,
        why_scripted=trial.why_scripted,
        database=trial.database_place,
        keys=keys,
        commands=announcement.commands(model),
        agents=agent_commands(engines.SCRIPTED_MODEL),
    )


def _server() -> ServerSettings:
    """Use the default ports if they are free, and one worker: it counts limits without Redis."""
    usual = ServerSettings()
    return ServerSettings(
        port=ports.free(usual.port), probe_port=ports.free(usual.probe_port), workers=1
    )
