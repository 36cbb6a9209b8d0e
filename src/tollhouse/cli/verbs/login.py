"""`tollhouse login` and `logout`: store an Admin key on this machine, and remove it."""

import os
import sys

import click
import msgspec
from msgspec import Struct

from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.verbs import profiles
from tollhouse.cli.verbs.gateway import OperationRequest
from tollhouse.cli.verbs.http_gateway import HttpGateway
from tollhouse.contract.organization_operations import RETRIEVE_ORGANIZATION


class LoggedIn(Struct, frozen=True, kw_only=True):
    """A profile that was written, and the organization of its key."""

    profile: str
    file: str
    url: str
    organization: str


@click.command(epilog=example("tollhouse login https://gateway.example.com"))
@click.argument("url")
@click.option("--profile", default=profiles.DEFAULT, help="Its name, if you use several gateways.")
@json_option
def login(*, url: str, profile: str, as_json: bool) -> None:
    """Store the address of a gateway and an Admin key, for commands without a configuration.

    Asks for the key, or reads it from standard input. The file can be read by you alone.
    """
    path, base_url = profiles.place(profile), profiles.address(url)
    if sys.stdin.isatty():
        key = click.prompt(f"Admin key of {base_url}", hide_input=True, err=True)
    else:
        key = sys.stdin.readline().strip()
    made = profiles.Login(url=base_url, admin_key=key)
    if base_url.startswith("http://"):
        output.note("Warning: over http, everybody on the way can read the key.")
    found, _ = HttpGateway(made).call(RETRIEVE_ORGANIZATION, OperationRequest())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(msgspec.json.encode(made))
    shown = LoggedIn(profile=profile, file=str(path), url=base_url, organization=found["name"])
    output.show(shown, as_json=as_json)


@click.command(epilog=example("tollhouse logout"))
@click.option("--profile", default=profiles.DEFAULT, help="Its name, if you use several gateways.")
@json_option
def logout(*, profile: str, as_json: bool) -> None:
    """Remove a stored Admin key from this machine. The key itself keeps working."""
    path = profiles.place(profile)
    path.unlink(missing_ok=True)
    output.say(f"Removed {path}.", as_json=as_json)
    if as_json:
        click.echo(msgspec.json.encode({"profile": profile, "file": str(path), "deleted": True}))
