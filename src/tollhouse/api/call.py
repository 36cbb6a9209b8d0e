"""What a handler gets and what it gives back."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tollhouse.api.admin_permits import AdminPermit
from tollhouse.api.head import Head
from tollhouse.api.house import House
from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.base.permissions import Permission
from tollhouse.keys.types import Caller

CallerT = TypeVar("CallerT", bound=Caller)
BodyT = TypeVar("BodyT")
QueryT = TypeVar("QueryT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(Generic[CallerT, BodyT, QueryT]):
    """An authenticated, decoded request. `tree` is the body before it was given its type.

    `body_bytes` is the size of the body as it was sent.

    `permission` is what the operation demands, and what the caller held at the door. `permit` is
    there on Admin routes; a handler may release it before it waits for something else than the
    database. `charge` is told for how many seconds the event loop was busy with the body.
    """

    house: House
    request_id: RequestId
    caller: CallerT
    permission: Permission
    now: datetime
    head: Head
    path: Mapping[str, str]
    target: str
    query: QueryT
    body: BodyT
    tree: Any
    body_bytes: int
    idempotency_key: str
    charge: Callable[[float], None]
    permit: AdminPermit | None = None

    @property
    def organization_id(self) -> OrganizationId:
        """The caller's own; no request is ever about another."""
        return self.caller.organization_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A success. The edge adds what every answer carries."""

    body: Struct
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[Call[Any, Any, Any]], Awaitable[Answer]]
