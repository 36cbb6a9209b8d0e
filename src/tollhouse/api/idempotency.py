"""Creating once: what any creation needs so that a retry finds what the first attempt made."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from tollhouse.api.call import Call
from tollhouse.api.mutations import mutation
from tollhouse.contract.decoding import canonical
from tollhouse.keys.types import Admin
from tollhouse.storage import idempotency
from tollhouse.storage.database import Mutation
from tollhouse.storage.idempotency import Claim, Replay
from tollhouse.storage.sealing import DataKeyGone, Sealed

T = TypeVar("T")

REPLAYED = (("idempotent-replayed", "true"),)


@dataclass(frozen=True, kw_only=True, slots=True)
class Creation(Generic[T]):
    """What would be created, by which steps, and the secret that only its creator may see.

    `create` runs in the transaction of the claim. `find` reads what an earlier request made.
    """

    resource_id: UUID
    create: Callable[[Mutation], Awaitable[T]]
    find: Callable[[Mutation, UUID], Awaitable[T]]
    secret: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Created(Generic[T]):
    """The resource as it is now. `secret` when this caller may see it."""

    resource: T
    secret: str | None
    is_replay: bool

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """A replay says that it is one."""
        return REPLAYED if self.is_replay else ()


async def create_once(call: Call[Admin, Any, Any], creation: Creation[T]) -> Created[T]:
    """Create, unless a request with the same key and the same meaning already did."""
    sealed = None
    if creation.secret is not None:
        sealed = await call.house.sealer.seal(
            creation.secret.encode(), bound_to=_bound_to(call), now=call.now
        )
    claim = Claim(
        idempotency_key=call.idempotency_key,
        fingerprint=_fingerprint(call),
        resource_id=creation.resource_id,
        creator_id=call.caller.key_id,
        sealed=sealed,
    )
    async with mutation(call) as tx:
        replay = await idempotency.claim(tx, claim, record_days=call.house.record_days)
        if replay is None:
            resource = await creation.create(tx)
            return Created(resource=resource, secret=creation.secret, is_replay=False)
        tx.unchanged()
        resource = await creation.find(tx, replay.resource_id)
    secret = await _reopened(call, replay)
    return Created(resource=resource, secret=secret, is_replay=True)


def _fingerprint(call: Call[Admin, Any, Any]) -> bytes:
    """The operation and the meaning of its body; not the headers, not which key called."""
    return hashlib.sha256(call.target.encode() + b"\0" + canonical(call.tree)).digest()


def _bound_to(call: Call[Admin, Any, Any]) -> bytes:
    return f"{call.organization_id} {call.idempotency_key}".encode()


async def _reopened(call: Call[Admin, Any, Any], replay: Replay) -> str | None:
    sealed: Sealed | None = replay.sealed
    if sealed is None:
        return None
    try:
        return (await call.house.sealer.open(sealed, bound_to=_bound_to(call))).decode()
    except DataKeyGone:
        return None
