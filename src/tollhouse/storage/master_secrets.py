"""The master secret and the previous ones that are still accepted while it is rotated.

Every worker reports which secrets it accepts. A new secret is used for writing only when every
live worker accepts it, so during a rolling restart any worker can read what another one wrote.
"""

import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from tollhouse.base.errors import DeploymentError
from tollhouse.storage import instances
from tollhouse.storage.database import Transaction

_ID_LABEL: Final = b"tollhouse master secret id v1"
_ID_LENGTH: Final = 16


class MasterSecretMismatch(DeploymentError):
    """Live workers write with a master secret that this configuration does not have."""

    code = "master_secret_mismatch"


class MasterSecrets:
    """The accepted secrets by ID, the preferred one first. An ID does not reveal its secret."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self.by_id: Mapping[str, bytes] = {_id_of(secret): secret for secret in secrets}

    @property
    def ids(self) -> list[str]:
        """The IDs, the preferred one first."""
        return list(self.by_id)


async def writing_id(tx: Transaction, masters: MasterSecrets) -> str:
    """Return the ID of the secret to write with: the first that every live worker accepts."""
    return preferred_id(masters.ids, await instances.accepted_master_ids(tx))


async def register(tx: Transaction, masters: MasterSecrets) -> None:
    """Raise as `verify` does, and block writers of data keys until the transaction ends."""
    await lock(tx)
    await verify(tx, masters)


async def verify(tx: Transaction, masters: MasterSecrets) -> None:
    """Raise `MasterSecretMismatch` if live workers write with a secret that is not accepted here.

    Such a worker could not read what they write, and they could not read what it writes.
    """
    missing = used_ids(await instances.accepted_master_ids(tx)) - set(masters.ids)
    if missing:
        message = (
            f"Live workers use the master secret {', '.join(sorted(missing))}, which is neither "
            "secrets.master nor in secrets.previous_masters here. Add it to "
            "secrets.previous_masters; `tollhouse secrets status` shows which worker accepts what. "
            f"Workers that were killed count as live for {instances.DEAD_AFTER_SECONDS:g} seconds."
        )
        raise MasterSecretMismatch(message)


async def lock(tx: Transaction) -> None:
    """Serialize starting workers with writers of data keys."""
    await tx.execute("LOCK TABLE data_keys IN SHARE ROW EXCLUSIVE MODE")


def preferred_id(own_ids: Sequence[str], live: Sequence[Sequence[str]]) -> str:
    """Return the first own ID that all live workers accept, or the first if they share none."""
    shared = (own for own in own_ids if all(own in accepted for accepted in live))
    return next(shared, own_ids[0])


def used_ids(live: Sequence[Sequence[str]]) -> set[str]:
    """Return the IDs that live workers write with; empty when they share no secret."""
    if not live or not set(live[0]).intersection(*live[1:]):
        return set()
    return {preferred_id(accepted, live) for accepted in live}


def _id_of(secret: bytes) -> str:
    return hmac.digest(secret, _ID_LABEL, "sha256").hex()[:_ID_LENGTH]
