"""`tollhouse reset`: the trial is gone, with all that was in it."""

from pathlib import Path
from typing import Literal

import click
from msgspec import Struct

from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option, yes_option
from tollhouse.cli.trial import stopping
from tollhouse.cli.trial.place import NoTrial, Place


class Removed(Struct, frozen=True, kw_only=True):
    """Nothing of the trial is left."""

    object: Literal["trial.removed"] = "trial.removed"
    folder: str
    is_database_kept: bool


@click.command("reset", epilog=example("tollhouse reset --yes"))
@yes_option
@json_option
@click.pass_obj
def command(settings_path: Path, *, yes: bool, as_json: bool) -> None:
    """Stop and remove what `tollhouse up` made: configuration, keys, database and logs.

    A database that was there before `up` was told to use it is kept.
    """
    place = Place(settings_path)
    with place.alone():
        trial = place.read()
        if trial is None:
            raise NoTrial
        output.confirm(f"Remove the trial in {place.folder} for good?", yes=yes, as_json=as_json)
        stopping.remove(place, trial)
        place.remove()
    is_kept = trial.server is None and not trial.is_database_created
    output.show(Removed(folder=str(place.folder), is_database_kept=is_kept), as_json=as_json)
