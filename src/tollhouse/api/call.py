"""What a handler gets and what it gives back."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tollhouse.api.house import House
from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.keys.types import Admin, Caller
from tollhouse.storage.database import Actor, Authority

CallerT = TypeVar("CallerT", bound=Caller)
BodyT = TypeVar("BodyT")
QueryT = TypeVar("QueryT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(Generic[CallerT, BodyT, QueryT]):
    """An authenticated, decoded request. `tree` is the body before it was given its type."""

    house: House
    request_id: RequestId
    caller: CallerT
    now: datetime
    path: Mapping[str, str]
    target: str
    query: QueryT
    body: BodyT
    tree: Any
    idempotency_key: str

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


def authority(call: Call[Admin, Any, Any]) -> Authority:
    """In whose name the call changes something."""
    return Authority(
        organization_id=call.caller.organization_id,
        actor=Actor(type="admin_api_key", id=str(call.caller.key_id)),
        request_id=call.request_id,
        now=call.now,
    )
