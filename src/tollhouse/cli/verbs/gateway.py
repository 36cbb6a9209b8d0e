"""What a generated command talks to, and how it asks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import quote, urlencode

from tollhouse.contract.operation import AnyOperation

Headers = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationRequest:
    """One call of an operation. `body` is None for operations without one."""

    path: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Mapping[str, Any] | None = None
    idempotency_key: str = ""

    def target(self, operation: AnyOperation) -> str:
        """Return the path with its parameters."""
        target = operation.path
        for name, value in self.path.items():
            target = target.replace(f"{{{name}}}", quote(value, safe=""))
        return target

    def encoded_query(self) -> str:
        """Return the query string."""
        return urlencode(self.query, doseq=True)


class Gateway(Protocol):
    """Answers operations."""

    identity: str
    """Stands for the caller, so that two callers' creations are told apart."""

    def now(self) -> datetime:
        """Return the time."""
        ...

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        ...

    def call(
        self, operation: AnyOperation, request: OperationRequest
    ) -> tuple[dict[str, Any], Headers]:
        """Return the answer and its headers. Raises `GatewayError`."""
        ...

    def download(self, operation: AnyOperation, request: OperationRequest) -> Iterator[bytes]:
        """Yield the pieces of a file. Raises `GatewayError`."""
        ...
