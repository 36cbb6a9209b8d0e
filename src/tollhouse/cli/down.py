"""`tollhouse down`: the trial stops, and stays as it is."""

from pathlib import Path
from typing import Literal

import click
from msgspec import Struct

from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.trial import stopping
from tollhouse.cli.trial.place import NoTrial, Place


class Stopped(Struct, frozen=True, kw_only=True):
    """Nothing of the trial runs."""

    object: Literal["trial.stopped"] = "trial.stopped"
    folder: str


@click.command("down", epilog=example("tollhouse down"))
@json_option
@click.pass_obj
def command(settings_path: Path, *, as_json: bool) -> None:
    """Stop what `tollhouse up` started. Nothing is lost, `tollhouse up` starts it again."""
    place = Place(settings_path)
    with place.alone():
        trial = place.read()
        if trial is None:
            raise NoTrial
        stopping.stop(place, trial)
    output.show(Stopped(folder=str(place.folder)), as_json=as_json)
