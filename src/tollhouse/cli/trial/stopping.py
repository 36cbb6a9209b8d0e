"""The way back: processes end in the reverse order of their start."""

import asyncio

import msgspec

from tollhouse.cli.provisioning import drop_database
from tollhouse.cli.trial import postgres, processes
from tollhouse.cli.trial.place import Place, Trial


def stop(place: Place, trial: Trial) -> None:
    """End what runs of it; its data stay."""
    for process in reversed(list(trial.processes.values())):
        processes.stop(process)
    if trial.server is not None:
        postgres.stop(trial.server)
    place.write(msgspec.structs.replace(trial, processes={}))


def remove(place: Place, trial: Trial) -> None:
    """Stop it and take away all that it made, a database on a given server included."""
    stop(place, trial)
    if trial.server is not None:
        postgres.remove(trial.server)
    elif trial.is_database_created:
        asyncio.run(drop_database(trial.database_url))
    place.clear()
