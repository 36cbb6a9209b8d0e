"""How handlers of Admin operations read and change the organization of their caller."""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from tollhouse.api.call import OperationCall
from tollhouse.api.session_access import SessionAccess
from tollhouse.base.clock import Clock
from tollhouse.contract.decoding import canonical
from tollhouse.keys import service as keys
from tollhouse.keys.types import Admin
from tollhouse.storage import idempotency
from tollhouse.storage.database import Actor, Authority, Database, Mutation, Transaction
from tollhouse.storage.idempotency import Claim, Replay
from tollhouse.storage.sealing import DataKeyGone, Sealer

T = TypeVar("T")

REPLAYED = (("idempotent-replayed", "true"),)


@dataclass(frozen=True, kw_only=True, slots=True)
class Creation(Generic[T]):
    """A resource to create, and the secret that only its creator may see.

    `create` runs in the transaction that claims the idempotency key. `find` reads the resource
    that an earlier request created. `is_for_closed`: the operator makes it in a closed
    organization too.
    """

    resource_id: UUID
    create: Callable[[Mutation], Awaitable[T]]
    find: Callable[[Mutation, UUID], Awaitable[T]]
    secret: str | None = None
    is_for_closed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Created(Generic[T]):
    """The resource in its present state. `secret` is None if this caller may not see it."""

    resource: T
    secret: str | None
    is_replay: bool

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the header that marks a replay."""
        return REPLAYED if self.is_replay else ()


class AdminDatabase:
    """The connection pool of Admin operations; inference has a pool of its own.

    `sealer` encrypts the secrets of creations that can be replayed. An idempotency key is
    remembered for `record_days`.
    """

    def __init__(
        self,
        pool: Database,
        clock: Clock,
        sealer: Sealer,
        sessions: SessionAccess,
        *,
        record_days: int,
    ) -> None:
        self.pool = pool
        self._sessions = sessions
        self._clock = clock
        self.sealer = sealer
        self._record_days = record_days

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that only reads."""
        return self.pool.transaction()

    @asynccontextmanager
    async def mutation_by(self, call: OperationCall[Admin, Any, Any]) -> AsyncGenerator[Mutation]:
        """Begin a change of the caller's organization, if the caller's key still permits it.

        Authentication may use a cached state of the key, and the body may arrive much later.
        Therefore the transaction reads the key again and locks it: nothing commits after the
        key's revocation.
        """
        authority = Authority(
            organization_id=call.organization_id,
            actor=_actor(call.caller),
            request_id=call.request_id,
            now=call.now,
        )
        async with self.pool.mutation(authority) as tx:  # caller: its key is read again below
            await self.require_working(tx, call)
            yield tx

    async def require_working(self, tx: Mutation, call: OperationCall[Admin, Any, Any]) -> Admin:
        """Return the caller with its present permissions, and lock them until the commit."""
        now = self._clock.now()
        if call.caller.session_id is not None:
            return await self._sessions.require_working(
                tx, call.caller, permission=call.permission, now=now
            )
        return await keys.require_working_admin_key(
            tx, call.caller.key_id, permission=call.permission, now=now
        )

    async def create_once(
        self, call: OperationCall[Admin, Any, Any], creation: Creation[T]
    ) -> Created[T]:
        """Create the resource, or return the one that the same request created before.

        A request without an idempotency key always creates.
        """
        if not call.idempotency_key:
            async with self.mutation_by(call) as tx:
                resource = await creation.create(tx)
            return Created(resource=resource, secret=creation.secret, is_replay=False)
        sealed = None
        if creation.secret is not None:
            sealed = await self.sealer.seal(
                creation.secret.encode(), bound_to=_bound_to(call), now=call.now
            )
        claim = Claim(
            idempotency_key=call.idempotency_key,
            fingerprint=_fingerprint(call),
            resource_id=creation.resource_id,
            creator_id=call.caller.key_id,
            sealed=sealed,
        )
        async with self.mutation_by(call) as tx:
            replay = await idempotency.claim(tx, claim, record_days=self._record_days)
            if replay is None:
                resource = await creation.create(tx)
                return Created(resource=resource, secret=creation.secret, is_replay=False)
            tx.unchanged()
            resource = await creation.find(tx, replay.resource_id)
        secret = await self._unsealed(call, replay)
        return Created(resource=resource, secret=secret, is_replay=True)

    async def _unsealed(self, call: OperationCall[Admin, Any, Any], replay: Replay) -> str | None:
        if replay.sealed is None:
            return None
        try:
            opened = await self.sealer.open(replay.sealed, bound_to=_bound_to(call), now=call.now)
        except DataKeyGone:
            return None
        return opened.decode()


def _actor(admin: Admin) -> Actor:
    kind = "admin_api_key" if admin.person_name is None else "person"
    return Actor(type=kind, id=str(admin.key_id), name=admin.person_name)


def _fingerprint(call: OperationCall[Admin, Any, Any]) -> bytes:
    """Return a digest of the path and the body's content, without headers and caller."""
    return hashlib.sha256(call.target.encode() + b"\0" + canonical(call.tree)).digest()


def _bound_to(call: OperationCall[Admin, Any, Any]) -> bytes:
    return f"{call.organization_id} {call.idempotency_key}".encode()
