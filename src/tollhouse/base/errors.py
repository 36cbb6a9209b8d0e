"""The base classes of failures, and texts for their messages."""

import difflib
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import ClassVar, Literal, TypeVar, cast, dataclass_transform

ERROR_PAGES_PATH = "/docs/errors"
"""The path below `server.public_url` with a page for each error code."""
RETRY_AFTER_SECONDS_MAX = 60
"""Some SDKs ignore longer waits, and others obey them without a bound."""
LISTED_MAX = 20
LISTED_LENGTH_MAX = 200


def listed(names: Sequence[str]) -> str:
    """Return names for a message: the first ones quoted and shortened, and how many follow."""
    shown = ", ".join(f"'{name[:LISTED_LENGTH_MAX]}'" for name in names[:LISTED_MAX])
    return shown if len(names) <= LISTED_MAX else f"{shown} and {len(names) - LISTED_MAX} more"


def listed_ids(ids: Sequence[str]) -> str:
    """Return IDs for a message after "has": "the ID 'a'", or "one of the IDs 'a', 'b'"."""
    return f"the ID {listed(ids)}" if len(ids) == 1 else f"one of the IDs {listed(ids)}"


def did_you_mean(unknown: str, known: Iterable[str], *, likeness_min: float = 0.6) -> str:
    """Return the end of a message about an unknown name: the most similar known one, if any is."""
    nearest = difflib.get_close_matches(unknown, list(known), n=1, cutoff=likeness_min)
    return f". Did you mean `{nearest[0]}`?" if nearest else ""


class Kind(IntEnum):
    """The kinds of failures, by HTTP status, as the specification lists them."""

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


@dataclass_transform(kw_only_default=True, eq_default=False)
class GatewayError(Exception):
    """A failure with a status, a code and a message.

    A subclass declares its message as `template`, which is formatted with the error as `self`. What
    a subclass annotates (other than as `ClassVar`) is a keyword of its constructor.
    `retry_after_seconds` and `should_retry` become the headers that SDKs obey; both are left out
    where they are None. With `cites_page` the message ends with the address of the code's page.
    `messages_words` is the message in the dialect of Messages, where clients look for its words.
    """

    kind: ClassVar[Kind]
    code: str
    template: ClassVar[str]
    param: str | None = None
    is_policy_failure: ClassVar[bool] = False
    cites_page: ClassVar[bool] = False
    messages_words: str | None = None
    retry_after_seconds: int | None = None
    should_retry: bool | None = None

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)
        self.message = self.template.format(self=self)
        super().__init__(self.message)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return headers beyond those that every response carries, such as `Allow`."""
        return ()


ExceptionT = TypeVar("ExceptionT", bound=BaseException)


def without_frames(failure: ExceptionT) -> ExceptionT:
    """Return the failure without its traceback, cause and context.

    Call this before you store a failure. A traceback keeps every frame that it passed, with the
    body of the request in a variable, and one of these frames often refers to the failure. Only
    the cyclic garbage collector would free such a cycle, and it runs rarely here.
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


class DeploymentError(Exception):
    """Something is wrong with the deployment, which its operator has to mend.

    No caller sees it. The command line prints its message, with `code` in JSON.
    """

    code: ClassVar[str]


class Unexpected(GatewayError):
    """The gateway has a bug. The operator finds details in the log under the request ID."""

    kind = Kind.UNEXPECTED
    code = "server_error"
    template = "The gateway failed unexpectedly. The request ID identifies the failure."


class ServiceUnavailable(GatewayError):
    """A service that the request needs is unavailable. A retry can succeed."""

    kind = Kind.UNAVAILABLE
    code = "service_unavailable"
    retry_after_seconds = 1


class OrganizationMoving(ServiceUnavailable):
    """The organization is frozen for seconds, while it moves to another cell."""

    code = "organization_moving"
    template = (
        "The organization is being moved to another cell and is frozen for some seconds. Nothing "
        "was charged or changed. Send the request again."
    )


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


class InvalidInput(GatewayError):
    """A parameter has a value that cannot be used; subclasses have a message of their own."""

    kind = Kind.INVALID
    code = "invalid_value"


class InvalidRequest(InvalidInput):
    """The request breaks a rule of the contract; `code` says which kind of rule."""

    template = "{self.text}"

    def __init__(self, code: InvalidCode, text: str, *, param: str | None = None) -> None:
        self.code, self.text, self.param = code, text, param
        super().__init__()


class UnknownCursor(InvalidInput):
    """`after` names nothing in the list that is being paged through."""

    param = "after"
    template = "Invalid 'after': not an ID from this list."
