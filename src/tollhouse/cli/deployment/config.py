"""`tollhouse config check`: what `tollhouse serve` would say of a configuration, offline."""

from pathlib import Path
from typing import Final, Literal

import click
import msgspec
from msgspec import Struct

from tollhouse.base.errors import DeploymentError
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.deployment.configuration_difference import (
    SettingDifference,
    SettingValues,
    differences,
    values_of,
)
from tollhouse.cli.models.unusual_prices import unusual_prices
from tollhouse.serving.supervisor import load_configuration
from tollhouse.settings import InvalidSettings

COLUMNS: Final = ("path", "change", "before", "after")
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class InvalidOther(DeploymentError):
    """The configuration to compare with is invalid."""

    code = "invalid_other_configuration"


class ConfigurationCheck(Struct, frozen=True, kw_only=True):
    """A valid configuration, its warnings, and its differences from another, if there is one."""

    object: Literal["configuration.check"] = "configuration.check"
    models: int
    backends: int
    warnings: list[str]
    differences: list[SettingDifference] | None


@click.group("config", epilog=example("tollhouse config check tollhouse.toml"))
def command() -> None:
    """Check a configuration without a deployment, and compare it with another."""


@command.command("check", epilog=example("tollhouse config check new.toml --against old.toml"))
@click.argument("file", type=_FILE)
@click.option(
    "--against",
    type=_FILE,
    metavar="OTHER",
    help="Show what FILE changes of this one. Of secrets it shows that they differ, and no value.",
)
@json_option
def check(file: Path, *, against: Path | None, as_json: bool) -> None:
    """Say whether `tollhouse serve` would accept a configuration. Connects to nothing.

    FILE is read with the variables of the environment, as `serve` reads it. The exit code is 0 if
    it is valid and 1 if not. CI needs no secrets: one that this machine does not have is a warning,
    one that it has must be valid. A price that is about a thousand times more or less than others
    is a warning too. Warnings do not change the exit code.
    """
    warnings: list[str] = []
    settings, catalog = load_configuration(file, report_absent=warnings.append)
    warnings += unusual_prices(catalog.models)
    found = ConfigurationCheck(
        models=len(catalog.models),
        backends=len(catalog.backends),
        warnings=warnings,
        differences=None
        if against is None
        else differences(_other_values(against), values_of(file, settings, catalog)),
    )
    for warning in warnings:
        output.note(f"Warning: {warning}")
    if as_json:
        output.show(found, as_json=True)
    else:
        _show(file, found)


def _other_values(path: Path) -> SettingValues:
    try:
        # Its absent secrets are of no interest.
        settings, catalog = load_configuration(path, report_absent=lambda _: None)
    except (InvalidSettings, InvalidCatalog) as error:
        message = f"The file of --against, {path}, is invalid: {error}"
        raise InvalidOther(message) from None
    return values_of(path, settings, catalog)


def _show(file: Path, found: ConfigurationCheck) -> None:
    catalog = f"models: {found.models}, backends: {found.backends}"
    click.echo(f"{file} is valid ({catalog}).")
    if found.differences:
        output.show_rows(msgspec.to_builtins(found.differences), COLUMNS)
    elif found.differences is not None:
        click.echo("Both configurations say the same.")
