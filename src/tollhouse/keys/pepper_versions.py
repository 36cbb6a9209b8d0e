"""Versions of the pepper. Each worker compares its own with the stored ones before it serves."""

from collections.abc import Mapping

from tollhouse.base.errors import DeploymentError
from tollhouse.keys.errors import NoCommonPepper
from tollhouse.keys.secrets import Peppers
from tollhouse.storage import instances
from tollhouse.storage.database import Transaction


class PepperMismatch(DeploymentError):
    """The configuration's peppers are not those that the stored keys were made with."""

    code = "pepper_mismatch"


async def register(tx: Transaction, peppers: Peppers) -> None:
    """Store this worker's versions; raise PepperMismatch if a stored one is missing or differs."""
    await _lock_peppers(tx)
    checks = _checks(peppers)
    _compare(checks, await _register_peppers(tx, checks))


async def register_accepted(tx: Transaction, peppers: Peppers) -> int:
    """Store the one version that new keys use now; raise PepperMismatch as `register` does.

    For the command line: it must not store a version that running workers do not have, since they
    could not start again.
    """
    await _lock_peppers(tx)
    version = await accepted(tx, peppers)
    stored = {version: peppers.check_digest(version)}
    _compare(_checks(peppers), await _register_peppers(tx, stored))
    return version


async def accepted(tx: Transaction, peppers: Peppers) -> int:
    """Return the newest version that every live worker accepts."""
    versions = await instances.versions_accepted_by_all(tx, peppers.versions)
    if not versions:
        raise NoCommonPepper
    return max(versions)


async def verify(tx: Transaction, peppers: Peppers) -> None:
    """Raise PepperMismatch as `register` does, but store nothing."""
    _compare(_checks(peppers), await _known_peppers(tx))


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


async def _lock_peppers(  # all organizations: peppers are the deployment's
    tx: Transaction,
) -> None:
    """Make registrations run one after the other, so that each sees the earlier ones."""
    await tx.execute("LOCK TABLE peppers IN SHARE ROW EXCLUSIVE MODE")


async def _register_peppers(  # all organizations: peppers are the deployment's
    tx: Transaction, checks: Mapping[int, bytes]
) -> dict[int, bytes]:
    """Store new versions; return the check digests of all versions."""
    await tx.execute(
        """
        INSERT INTO peppers (version, check_digest)
        SELECT * FROM unnest($1::smallint[], $2::bytea[])
        ON CONFLICT (version) DO NOTHING
        """,
        list(checks),
        list(checks.values()),
    )
    return await _known_peppers(tx)


async def _known_peppers(  # all organizations: peppers are the deployment's
    tx: Transaction,
) -> dict[int, bytes]:
    """Return the check digests of all versions."""
    rows = await tx.fetch_all("SELECT version, check_digest FROM peppers")
    return {row["version"]: row["check_digest"] for row in rows}


async def retire(  # all organizations: peppers are the deployment's
    tx: Transaction, version: int
) -> int:
    """Remove a version and every secret that was made with it; return the number of secrets."""
    await tx.execute("DELETE FROM peppers WHERE version = $1", version)
    return await tx.execute("DELETE FROM key_directory WHERE pepper_version = $1", version)


async def count_secrets(  # all organizations: peppers are the deployment's
    tx: Transaction,
) -> dict[int, int]:
    """Count the secrets of each version. Reads the whole directory: for the operator only."""
    rows = await tx.fetch_all(
        """
        SELECT p.version, count(d.digest) AS secrets
          FROM peppers p
          LEFT JOIN key_directory d ON d.pepper_version = p.version
         GROUP BY p.version
        """
    )
    return {row["version"]: row["secrets"] for row in rows}
