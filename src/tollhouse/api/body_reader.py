"""From a request's bytes to its typed body, within bounds for each key and organization.

Small bodies are parsed where they arrive. A large one counts against its key and organization while
it is read and parsed, and is parsed in a thread. An organization has one body at a time with these
threads, so that another's waits behind one of each organization, never behind many of one.
"""

import asyncio
from collections import Counter
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from msgspec import Struct

from tollhouse.api.body import Body
from tollhouse.api.body_quota import HeldBody, parsed_cost
from tollhouse.api.edge_errors import TooManyBodies
from tollhouse.api.parsing_turns import ParsingTurns, is_costly
from tollhouse.contract import decoding, json_scan
from tollhouse.contract.json_scan import Document
from tollhouse.keys.types import Caller
from tollhouse.observability import bound_metrics, metrics
from tollhouse.observability.bound_metrics import BodyBound

BodyT = TypeVar("BodyT", bound=Struct)

ON_LOOP_BYTES_MAX: Final = 65_536
ON_LOOP_ELEMENTS_MAX: Final = 4_096
"""A body within both takes the event loop about a millisecond at most. All others are large."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyConcurrency:
    """How many large bodies a worker reads and parses at once."""

    per_key_max: int
    per_organization_max: int


class BodyReader:
    """One per worker."""

    def __init__(self, pool: Executor, concurrency: BodyConcurrency) -> None:
        self._pool = pool
        self._concurrency = concurrency
        self._large_bodies: Counter[UUID] = Counter()
        self._turns = ParsingTurns()

    async def read(
        self, body: Body, type_: type[BodyT], caller: Caller, held: HeldBody
    ) -> tuple[Any, BodyT]:
        """Return the parsed tree and the typed value. The caller of this releases `held`."""
        permit = _LargeBodyPermit(self, caller)

        def received(size_bytes: int) -> None:
            held.received(size_bytes)
            if size_bytes > ON_LOOP_BYTES_MAX:
                permit.acquire()

        try:
            data = await body.read(received)
            metrics.body_read(len(data))
            if not permit.is_held and json_scan.elements_bound(data) <= ON_LOOP_ELEMENTS_MAX:
                return _typed(data, json_scan.structure(data), type_)
            permit.acquire()
            return await self._parse_in_thread(data, type_, caller, held)
        finally:
            permit.release()

    async def _parse_in_thread(
        self, data: Document, type_: type[BodyT], caller: Caller, held: HeldBody
    ) -> tuple[Any, BodyT]:
        run = asyncio.get_running_loop().run_in_executor
        held.is_large = True
        async with self._turns.one(caller.organization_id):
            found, cost = await run(self._pool, _measure, data)
            held.will_cost(cost)
            if not is_costly(size_bytes=len(data), elements=len(found)):
                return await run(self._pool, _typed, data, found, type_)
            held.is_costly = True
            async with self._turns.costly(caller.organization_id):
                return await run(self._pool, _typed, data, found, type_)

    def charge(self, held: HeldBody, busy_seconds: float) -> None:
        """Delay the organization's next large body if this one was large."""
        if held.is_large:
            held.busy_seconds += busy_seconds
            self._turns.charge(held.organization_id, held.busy_seconds, is_costly=held.is_costly)

    def count_large(self, caller: Caller) -> None:
        """Count one more large body. Raises if its key or organization sends too many at once."""
        bound = self._concurrency
        if self._large_bodies[caller.key_id] >= bound.per_key_max:
            bound_metrics.body_refused(BodyBound.KEY_BODIES)
            raise TooManyBodies("key", bound.per_key_max)
        if self._large_bodies[caller.organization_id] >= bound.per_organization_max:
            bound_metrics.body_refused(BodyBound.ORGANIZATION_BODIES)
            raise TooManyBodies("organization", bound.per_organization_max)
        self._large_bodies.update((caller.key_id, caller.organization_id))

    def discount_large(self, caller: Caller) -> None:
        """Count one less; who sends none is forgotten."""
        for sender in (caller.key_id, caller.organization_id):
            self._large_bodies[sender] -= 1
            if not self._large_bodies[sender]:
                del self._large_bodies[sender]


class _LargeBodyPermit:
    """One of the places that a key and its organization have for large bodies."""

    __slots__ = ("_caller", "_reader", "is_held")

    def __init__(self, reader: BodyReader, caller: Caller) -> None:
        self._reader = reader
        self._caller = caller
        self.is_held = False

    def acquire(self) -> None:
        """Take it once, however often this is called. Raises if there is none."""
        if not self.is_held:
            self._reader.count_large(self._caller)
            self.is_held = True

    def release(self) -> None:
        """Give it back if it was taken."""
        if self.is_held:
            self.is_held = False
            self._reader.discount_large(self._caller)


def _measure(data: Document) -> tuple[bytes, int]:
    """Return the structure of a body, and the memory that it will take."""
    found = json_scan.structure(data)
    return found, parsed_cost(
        len(data), character_bytes=json_scan.character_bytes(data), elements=len(found)
    )


def _typed(data: Document, found: bytes, type_: type[BodyT]) -> tuple[Any, BodyT]:
    tree = decoding.parse(data, found)
    return tree, decoding.decode(tree, type_)
