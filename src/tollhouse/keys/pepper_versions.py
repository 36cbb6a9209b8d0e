"""Peppers that differ between workers would turn every key away: compared before serving."""

from collections.abc import Mapping

from tollhouse.base.errors import ServiceUnavailable
from tollhouse.keys import store
from tollhouse.keys.secrets import Peppers
from tollhouse.storage import instances
from tollhouse.storage.database import Transaction


class PepperMismatch(Exception):
    """The configuration's peppers are not those that the stored keys were made with."""


async def register(tx: Transaction, peppers: Peppers) -> None:
    """Enter our versions, and refuse to go on when a known one is missing or another secret."""
    await store.lock_peppers(tx)
    checks = _checks(peppers)
    _compare(checks, await store.register_peppers(tx, checks))


async def register_accepted(tx: Transaction, peppers: Peppers) -> int:
    """Enter the one version that a key can be made with now, and refuse as `register` does.

    For whoever is no worker: a version that only the command line has been given must not keep
    workers without it from starting.
    """
    await store.lock_peppers(tx)
    version = await accepted(tx, peppers)
    entered = {version: peppers.check_digest(version)}
    _compare(_checks(peppers), await store.register_peppers(tx, entered))
    return version


async def accepted(tx: Transaction, peppers: Peppers) -> int:
    """The newest version that every live worker accepts."""
    versions = await instances.versions_accepted_by_all(tx, peppers.versions)
    if not versions:
        message = "The workers share no pepper version; keys cannot be created now."
        raise ServiceUnavailable(message)
    return max(versions)


async def verify(tx: Transaction, peppers: Peppers) -> None:
    """Refuse as `register` does, but enter nothing."""
    _compare(_checks(peppers), await store.known_peppers(tx))


def _checks(peppers: Peppers) -> dict[int, bytes]:
    return {version: peppers.check_digest(version) for version in peppers.versions}


def _compare(checks: Mapping[int, bytes], known_checks: Mapping[int, bytes]) -> None:
    for version, known_check in known_checks.items():
        if version not in checks:
            message = (
                f"secrets.peppers.{version} is missing, and keys may have been made with it. "
                f"Put it back, or end those keys with `tollhouse key retire-pepper {version}`."
            )
            raise PepperMismatch(message)
        if checks[version] != known_check:
            message = f"secrets.peppers.{version} is not the secret that this version began with."
            raise PepperMismatch(message)


async def retire(tx: Transaction, version: int) -> int:
    """End all secrets made with a version; returns how many there were."""
    return await store.delete_secrets_of_pepper(tx, version)


async def count_secrets(tx: Transaction) -> dict[int, int]:
    """Secrets per version. Reads the whole directory: for the operator only."""
    return await store.count_secrets_by_pepper(tx)
