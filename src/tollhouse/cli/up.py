"""`tollhouse up`: everything at once on this machine, to try it out."""

from pathlib import Path

import click

from tollhouse.cli import output, progress
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.trial import starting, telling
from tollhouse.cli.trial.place import Place


@click.command("up", epilog=example("tollhouse up"))
@click.option(
    "--database-url",
    help="A PostgreSQL that you have. Else one is started here, from its installed binaries.",
)
@json_option
@click.pass_obj
def command(settings_path: Path, *, database_url: str | None, as_json: bool) -> None:
    """Start a trial: database, engine, gateway, and an organization with an example of a past.

    It lives in tollhouse.toml and .tollhouse in this directory and runs on until
    `tollhouse down`. The engine is a small real model where the extra `demo` is installed, else
    a scripted one. For a deployment that is meant to stay, use `tollhouse init`.
    """
    place = Place(settings_path)
    place.make()
    with place.alone(), progress.bars(as_json=as_json) as bars:
        running = starting.start(place, database_url, bars)
    if as_json:
        output.show(running, as_json=True)
    else:
        output.say(telling.text(running), as_json=False)
