"""One closed family of failures: each class says what the caller can do about it."""

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar, Literal, TypeVar, cast

ERROR_PAGES_PATH = "/docs/errors"
"""Where the gateway serves a page for each code, below `server.public_url`."""
RETRY_AFTER_SECONDS_MAX = 60
"""Longer waits are ignored by some SDKs and obeyed without bound by others."""


LISTED_MAX = 20
LISTED_LENGTH_MAX = 200


def listed(names: Sequence[str]) -> str:
    """Return names for a message: quoted, each cut short, and how many follow the first ones."""
    shown = ", ".join(f"'{name[:LISTED_LENGTH_MAX]}'" for name in names[:LISTED_MAX])
    return shown if len(names) <= LISTED_MAX else f"{shown} and {len(names) - LISTED_MAX} more"


def listed_ids(ids: Sequence[str]) -> str:
    """Return IDs for a message after "has": "the ID 'a'", or "one of the IDs 'a', 'b'"."""
    return f"the ID {listed(ids)}" if len(ids) == 1 else f"one of the IDs {listed(ids)}"


class Kind(IntEnum):
    """The specification's status table; every failure is one of these."""

    INVALID = 400
    UNAUTHENTICATED = 401
    UNCOVERED = 402
    DENIED = 403
    NOT_FOUND = 404
    METHOD_NOT_ALLOWED = 405
    TIMED_OUT_READING = 408
    CONFLICT = 409
    TOO_LARGE = 413
    UNSUPPORTED_MEDIA = 415
    PROVIDER_INVALID = 422
    LIMITED = 429
    HEADERS_TOO_LARGE = 431
    UNEXPECTED = 500
    NOT_IMPLEMENTED = 501
    BACKEND_FAILED = 502
    UNAVAILABLE = 503
    DEADLINE = 504


class GatewayError(Exception):
    """A failure with a status, a code and a sentence; raised once, rendered once.

    `retry_after_seconds` and `should_retry` become the headers that SDKs obey. A subclass
    that leaves them alone says nothing about retrying. `cites_page` says that the message ends
    with the address of the code's page, where it is known.
    """

    kind: ClassVar[Kind]
    code: str
    is_policy_failure: ClassVar[bool] = False
    cites_page: ClassVar[bool] = False
    retry_after_seconds: int | None = None
    should_retry: bool | None = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers beyond those that every answer carries, such as `Allow`."""
        return ()


ExceptionT = TypeVar("ExceptionT", bound=BaseException)


def without_frames(failure: ExceptionT) -> ExceptionT:
    """Return the failure without its traceback, cause and context.

    Whoever stores a failure calls this: a traceback keeps every frame that it passed, with the
    request's body among their variables, and one of these frames often refers to the failure. Only
    the cyclic collector, which runs rarely here, would free such a cycle.
    """
    waiting: list[BaseException | None] = [failure]
    while waiting:
        exception = waiting.pop()
        if exception is not None:
            waiting += (exception.__cause__, exception.__context__)
            if isinstance(exception, BaseExceptionGroup):
                waiting += cast("tuple[BaseException, ...]", exception.exceptions)  # pyright: ignore[reportUnknownMemberType] - of any kind
            exception.__cause__ = exception.__context__ = exception.__traceback__ = None
    return failure


class Unexpected(GatewayError):
    """The gateway has a bug. The operator finds details in the log under the request ID."""

    kind = Kind.UNEXPECTED
    code = "server_error"

    def __init__(self) -> None:
        super().__init__("The gateway failed unexpectedly. The request ID identifies the failure.")


class ServiceUnavailable(GatewayError):
    """Something that the request needs is not there now; trying again can help."""

    kind = Kind.UNAVAILABLE
    code = "service_unavailable"
    retry_after_seconds = 1


InvalidCode = Literal[
    "invalid_json",
    "missing_required_parameter",
    "unknown_parameter",
    "invalid_type",
    "invalid_value",
    "integer_below_min_value",
    "integer_above_max_value",
    "decimal_below_min_value",
    "decimal_above_max_value",
    "string_below_min_length",
    "string_above_max_length",
    "array_below_min_length",
    "array_above_max_length",
    "invalid_parameter_combination",
    "unsupported_parameter",
    "unsupported_value",
]


class InvalidRequest(GatewayError):
    """The request breaks a rule of the contract; `code` says which kind of rule."""

    kind = Kind.INVALID

    def __init__(self, code: InvalidCode, message: str, *, param: str | None = None) -> None:
        super().__init__(message, param=param)
        self.code = code


class UnknownCursor(InvalidRequest):
    """`after` names nothing in the list that is being paged through."""

    def __init__(self) -> None:
        super().__init__(
            "invalid_value", "Invalid 'after': not an ID from this list.", param="after"
        )
