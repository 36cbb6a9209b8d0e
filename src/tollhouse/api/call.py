"""The input and the output of a handler."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tollhouse.api.admin_permits import AdminPermit
from tollhouse.api.head import Head
from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.base.permissions import Permission
from tollhouse.keys.types import Caller

CallerT = TypeVar("CallerT", bound=Caller)
BodyT = TypeVar("BodyT")
QueryT = TypeVar("QueryT")


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationCall(Generic[CallerT, BodyT, QueryT]):
    """An authenticated and decoded request.

    `tree` is the parsed body before its conversion to a type. `body_bytes` is the size of the body
    as it was sent. `permission` is the one that the operation requires and that the caller's key
    had at authentication. Only Admin operations have a `permit`; a handler may release it before
    it waits for anything but the database. `charge` is called with the seconds for which the event
    loop was busy with the body.
    """

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
        """The caller's organization; a request never concerns another one."""
        return self.caller.organization_id


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationAnswer:
    """A success. The edge adds the headers that every answer has."""

    body: Struct
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FileAnswer:
    """A success whose body is a file of unknown length.

    The handler has read `first` already, so that what refuses the request is still an error. If
    `rest` raises, the connection closes before the end of the body, so that no client takes the
    file for complete.
    """

    media_type: str
    name: str
    first: bytes
    rest: AsyncGenerator[bytes]
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[OperationCall[Any, Any, Any]], Awaitable[OperationAnswer | FileAnswer]]
