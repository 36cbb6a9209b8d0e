"""`tollhouse key peppers` and `retire-pepper`: the pepper versions of a deployment."""

from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option, yes_option
from tollhouse.cli.keys import workers
from tollhouse.cli.session import Session
from tollhouse.keys import pepper_versions
from tollhouse.storage import instances

COLUMNS: Final = ("version", "secrets", "configured", "workers", "workers_live", "mints")
VERSION_MAX: Final = 32_767


class PepperNotFound(GatewayError):
    """No key was made with this pepper version."""

    kind = Kind.NOT_FOUND
    code = "pepper_not_found"
    template = "No key was made with pepper version {self.version}. See `tollhouse key peppers`."
    version: int


class PepperStillNeeded(GatewayError):
    """The version is the only one, so that no key could be created or found without it."""

    kind = Kind.CONFLICT
    code = "pepper_needed"
    template = (
        "Pepper version {self.version} is the only one in secrets.peppers. Add a newer one first."
    )
    version: int


class Pepper(Struct, frozen=True, kw_only=True):
    """One pepper version. `mints` says whether new keys are made with it."""

    object: Literal["pepper"] = "pepper"
    version: int
    secrets: int
    configured: bool
    workers: int
    workers_live: int
    mints: bool


class PepperList(Struct, frozen=True, kw_only=True):
    """All pepper versions of the database and of the configuration."""

    object: Literal["list"] = "list"
    data: list[Pepper]


class PepperRetired(Struct, frozen=True, kw_only=True):
    """A retired version, with the number of key values that no longer work."""

    object: Literal["pepper.retired"] = "pepper.retired"
    version: int
    secrets_ended: int


@click.command(epilog=example("tollhouse key peppers"))
@json_option
@click.pass_obj
def peppers(settings_path: Path, *, as_json: bool) -> None:
    """Show the key values and live workers of each pepper version."""
    found = session.run(settings_path, _read)
    output.show_list(found, COLUMNS, as_json=as_json)


async def _read(operator: Session) -> PepperList:
    configured = operator.peppers.versions
    live = await workers.live(operator.database)
    async with operator.database.transaction() as tx:
        secrets = await pepper_versions.count_secrets(tx)
        accepted = await instances.versions_accepted_by_all(tx, configured)
    data = [
        Pepper(
            version=version,
            secrets=secrets.get(version, 0),
            configured=version in configured,
            workers=sum(version in worker.pepper_versions for worker in live),
            workers_live=len(live),
            mints=version == max(accepted, default=None),
        )
        for version in sorted({*secrets, *configured})
    ]
    return PepperList(data=data)


@click.command("retire-pepper", epilog=example("tollhouse key retire-pepper 1"))
@click.argument("version", type=click.IntRange(1, VERSION_MAX))
@yes_option
@json_option
@click.pass_obj
def retire(settings_path: Path, *, version: int, yes: bool, as_json: bool) -> None:
    """Revoke every key value that was made with a pepper version, for good."""
    secrets, configured = session.run(settings_path, _known)
    if version not in secrets:
        raise PepperNotFound(version=version)
    if set(configured) <= {version}:
        raise PepperStillNeeded(version=version)
    question = f"Retire pepper version {version} and revoke its {secrets[version]} key values?"
    output.confirm(question, yes=yes, as_json=as_json)

    async def work(operator: Session) -> int:
        async with operator.database.transaction() as tx:
            return await pepper_versions.retire(tx, version)

    ended = session.run(settings_path, work)
    output.show(PepperRetired(version=version, secrets_ended=ended), as_json=as_json)


async def _known(operator: Session) -> tuple[dict[int, int], list[int]]:
    """Return the number of key values by version, and the configured versions."""
    async with operator.database.transaction() as tx:
        return await pepper_versions.count_secrets(tx), operator.peppers.versions
