"""Failures of a call to a backend, and of the transport below it.

No message contains a host, a header or a credential: callers read them.
"""

from enum import StrEnum, auto
from typing import ClassVar

from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX, GatewayError, Kind

BUSY_RETRY_SECONDS = 1
NO_REPLICA_RETRY_SECONDS = 5
_AGAIN = "Send the request again. If it fails again, tell the operator the request ID."


class TransportError(Exception):
    """The upstream gave no answer, or not all of it."""


class NotConnected(TransportError):
    """No connection was established. No byte of the request was sent."""


class ConnectionBroken(TransportError):
    """The connection ended before the answer did."""


class NotHttp(TransportError):
    """The answer is not valid HTTP/1.1."""


class UpstreamBodyTooLarge(TransportError):
    """The body of the answer exceeds its bound."""


class TookTooLong(TransportError):
    """The deadline of the task that waits for the answer has passed."""


class RetrySafety(StrEnum):
    """Where the same request may be sent again, as long as no answer has begun."""

    NEVER = auto()
    ELSEWHERE = auto()
    ANYWHERE = auto()


class BackendError(GatewayError):
    """A call to a backend failed.

    `was_sent`: a replica may have received a part of the request. `may_have_been_billed`: a
    provider that bills without an answer may bill this call. `blames_replica`: the failure counts
    against the replica's circuit breaker.
    """

    outcome: ClassVar[str]
    retry_safety: ClassVar[RetrySafety] = RetrySafety.NEVER
    blames_replica: ClassVar[bool] = False
    was_sent: ClassVar[bool] = True
    may_have_been_billed: ClassVar[bool] = True
    replica: str | None


class BackendRejected(BackendError):
    """The backend refuses the request as invalid. The message has the backend's reason."""

    kind = Kind.PROVIDER_INVALID
    code = "provider_validation_failed"
    outcome = "rejected"
    may_have_been_billed = False
    template = "The backend refused the request{self.end}"

    def __init__(self, reason: str | None, *, replica: str) -> None:
        self.end = f": {reason}" if reason else "."
        super().__init__(replica=replica)

    def without_words(self) -> "BackendRejected":
        """Return the refusal without the backend's reason, which no policy has evaluated."""
        return BackendRejected(None, replica=self.replica or "")


class BackendFailed(BackendError):
    """The backend answered with a failure of its own."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"
    outcome = "failed"
    template = "The backend failed to answer. " + _AGAIN


class BackendMalformed(BackendFailed):
    """The backend's answer is not valid HTTP, JSON or events, or is an error with status 200."""

    outcome = "nonsense"
    blames_replica = True


class BackendUnauthorized(BackendFailed):
    """The backend refuses the gateway's credential or account. The operator has to correct it."""

    may_have_been_billed = False


class BackendUnreachable(BackendFailed):
    """The gateway could not connect to the backend. Nothing was sent."""

    outcome = "unreachable"
    retry_safety = RetrySafety.ELSEWHERE
    blames_replica = True
    was_sent = False
    may_have_been_billed = False
    template = "The backend could not be reached. " + _AGAIN


class BackendDown(BackendFailed):
    """A proxy in front of the backend answers that the backend is down (502, 503, 504)."""

    retry_safety = RetrySafety.ELSEWHERE
    blames_replica = True


class BackendHungUp(BackendFailed):
    """The connection ended before an answer. It may have been an idle one that was closing."""

    outcome = "hung_up"
    retry_safety = RetrySafety.ANYWHERE
    blames_replica = True
    template = "The backend closed the connection without an answer. " + _AGAIN


class BackendBroke(BackendError):
    """The answer began and did not end."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"
    outcome = "broke"
    blames_replica = True
    template = "The backend's answer broke off. " + _AGAIN


class BackendBusy(BackendError):
    """The backend is overloaded (429), or all connections to it are in use."""

    kind = Kind.UNAVAILABLE
    code = "server_is_overloaded"
    outcome = "busy"
    retry_safety = RetrySafety.ELSEWHERE
    may_have_been_billed = False
    template = "The model's backend is overloaded. Try again later."

    def __init__(self, *, replica: str | None, retry_after_seconds: int | None = None) -> None:
        super().__init__(replica=replica)
        wait_seconds = BUSY_RETRY_SECONDS if retry_after_seconds is None else retry_after_seconds
        self.retry_after_seconds = max(1, min(wait_seconds, RETRY_AFTER_SECONDS_MAX))


class NoReplica(BackendError):
    """No replica of the backend is available."""

    kind = Kind.UNAVAILABLE
    code = "service_unavailable"
    outcome = "no_replica"
    was_sent = False
    may_have_been_billed = False
    retry_after_seconds = NO_REPLICA_RETRY_SECONDS
    template = "The model's backend is unavailable. Try again shortly."
    replica: str | None = None


class BackendTimedOut(BackendError):
    """The first event, the next one or the whole answer took longer than its timeout."""

    kind = Kind.DEADLINE
    code = "deadline_exceeded"
    outcome = "timed_out"
    should_retry = False
    template = "The backend did not answer in time. Ask for less, or try again later."
