"""Peppers that differ between workers would turn every key away: compared before serving."""

from collections.abc import Mapping

from tollhouse.keys import store
from tollhouse.keys.secrets import Peppers
from tollhouse.storage.database import Transaction


class PepperMismatch(Exception):
    """The configuration's peppers are not those that the stored keys were made with."""


async def register(tx: Transaction, peppers: Peppers) -> None:
    """Enter our versions, and refuse to go on when a known one is missing or another secret."""
    checks = _checks(peppers)
    _compare(checks, await store.register_peppers(tx, checks))


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
