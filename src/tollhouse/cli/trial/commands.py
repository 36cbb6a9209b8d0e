"""`tollhouse up`, `down` and `reset`: a trial deployment on this machine."""

from pathlib import Path
from typing import Literal

import click
from msgspec import Struct

from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option, yes_option
from tollhouse.cli.trial import announcement, lifecycle
from tollhouse.cli.trial.folder import TrialFolder


class Stopped(Struct, frozen=True, kw_only=True):
    """A trial whose processes were stopped."""

    object: Literal["trial.stopped"] = "trial.stopped"
    stopped: list[str]
    kept: list[str]


class Removed(Struct, frozen=True, kw_only=True):
    """A trial that was removed with its data."""

    object: Literal["trial.removed"] = "trial.removed"
    folder: str
    is_database_kept: bool


@click.command("up", epilog=example("tollhouse up"))
@click.option(
    "--database-url",
    help="An existing PostgreSQL. When left out, one is started from installed binaries.",
)
@json_option
@click.pass_obj
def up(settings_path: Path, *, database_url: str | None, as_json: bool) -> None:
    """Start a trial: a database, an engine, the gateway and an organization with example usage.

    Its files are tollhouse.toml and .tollhouse in this directory. It runs until
    `tollhouse down`. The engine is a small real model if the extra `demo` is installed, otherwise
    a scripted one. Use `tollhouse init` to set up a deployment that you want to keep.
    """
    folder = TrialFolder(settings_path)
    folder.make()
    with folder.locked(), output.progress_bars(as_json=as_json) as bars:
        running = lifecycle.start(folder, database_url, bars)
    if as_json:
        output.show(running, as_json=True)
    else:
        output.say(announcement.text(running), as_json=False)


@click.command("down", epilog=example("tollhouse down"))
@json_option
@click.pass_obj
def down(settings_path: Path, *, as_json: bool) -> None:
    """Stop the trial and keep its data. `tollhouse up` starts it again."""
    folder = TrialFolder(settings_path)
    with folder.locked():
        trial = folder.require()
        stopped = lifecycle.stop(folder, trial)
    kept = [str(folder.settings_path), str(folder.path), trial.database_place]
    output.show(Stopped(stopped=stopped, kept=kept), as_json=as_json)


@click.command("reset", epilog=example("tollhouse reset --yes"))
@yes_option
@json_option
@click.pass_obj
def reset(settings_path: Path, *, yes: bool, as_json: bool) -> None:
    """Stop the trial and remove its configuration, keys, database and logs.

    A database that existed before `tollhouse up --database-url` is kept.
    """
    folder = TrialFolder(settings_path)
    with folder.locked():
        trial = folder.require()
        output.confirm(f"Remove the trial in {folder.path} for good?", yes=yes, as_json=as_json)
        lifecycle.remove(folder, trial)
        folder.remove()
    is_kept = trial.server is None and not trial.is_database_created
    output.show(Removed(folder=str(folder.path), is_database_kept=is_kept), as_json=as_json)
