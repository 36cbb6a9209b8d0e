"""How a call to a backend fails. Nothing here tells a caller a host, a header or a credential."""

from enum import StrEnum, auto
from typing import ClassVar

from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX, GatewayError, Kind

BUSY_RETRY_SECONDS = 1
NO_REPLICA_RETRY_SECONDS = 5
_AGAIN = "Send the request again. If it fails again, tell the operator the request ID."


class Repeat(StrEnum):
    """Where the same call may be sent again, as long as no answer has begun."""

    NEVER = auto()
    ELSEWHERE = auto()
    ANYWHERE = auto()


class BackendError(GatewayError):
    """A call did not get its answer.

    `was_sent`: a replica may have seen some of the request. `may_have_been_billed`: a provider
    that bills without an answer may count the call.
    """

    outcome: ClassVar[str]
    repeat: ClassVar[Repeat] = Repeat.NEVER
    blames_replica: ClassVar[bool] = False
    was_sent: ClassVar[bool] = True
    may_have_been_billed: ClassVar[bool] = True

    def __init__(self, message: str, *, replica: str | None) -> None:
        super().__init__(message)
        self.replica = replica


class BackendRejected(BackendError):
    """The backend refuses the request as invalid. The message has the backend's reason."""

    kind = Kind.PROVIDER_INVALID
    code = "provider_validation_failed"
    outcome = "rejected"
    may_have_been_billed = False

    def __init__(self, said: str | None, *, replica: str) -> None:
        reason = f": {said}" if said else "."
        super().__init__(f"The backend refused the request{reason}", replica=replica)

    def without_words(self) -> "BackendRejected":
        """For a caller who may not read anything of the backend's that nobody has judged."""
        return BackendRejected(None, replica=self.replica or "")


class BackendFailed(BackendError):
    """The backend answered with a failure of its own."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"
    outcome = "failed"
    says: ClassVar[str] = "The backend failed to answer. " + _AGAIN

    def __init__(self, *, replica: str) -> None:
        super().__init__(self.says, replica=replica)


class BackendNonsense(BackendFailed):
    """The backend's answer is not readable as HTTP, JSON or events, or is an error with 200."""

    outcome = "nonsense"
    blames_replica = True


class BackendDeniedUs(BackendFailed):
    """The backend refuses the gateway's own credential or account, which its operator can mend."""

    may_have_been_billed = False


class BackendUnreachable(BackendFailed):
    """The gateway could not connect to the backend. Nothing was sent."""

    outcome = "unreachable"
    repeat = Repeat.ELSEWHERE
    blames_replica = True
    was_sent = False
    may_have_been_billed = False
    says = "The backend could not be reached. " + _AGAIN


class BackendDown(BackendFailed):
    """A proxy before the backend answers that the backend is not there (502, 503, 504)."""

    repeat = Repeat.ELSEWHERE
    blames_replica = True


class BackendHungUp(BackendFailed):
    """The connection ended before an answer; it may have been an idle one that was just closing."""

    outcome = "hung_up"
    repeat = Repeat.ANYWHERE
    blames_replica = True
    says = "The backend closed the connection without an answer. " + _AGAIN


class BackendBroke(BackendError):
    """The answer began and did not end."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"
    outcome = "broke"
    blames_replica = True

    def __init__(self, *, replica: str) -> None:
        super().__init__("The backend's answer broke off. " + _AGAIN, replica=replica)


class BackendBusy(BackendError):
    """The backend takes no more for now (429), or all connections to it are in use."""

    kind = Kind.UNAVAILABLE
    code = "server_is_overloaded"
    outcome = "busy"
    repeat = Repeat.ELSEWHERE
    may_have_been_billed = False

    def __init__(self, *, replica: str | None, retry_after_seconds: int | None = None) -> None:
        super().__init__("The model's backend is overloaded. Try again later.", replica=replica)
        wait_seconds = BUSY_RETRY_SECONDS if retry_after_seconds is None else retry_after_seconds
        self.retry_after_seconds = max(1, min(wait_seconds, RETRY_AFTER_SECONDS_MAX))


class NoReplica(BackendError):
    """None of the backend's replicas answers at present."""

    kind = Kind.UNAVAILABLE
    code = "service_unavailable"
    outcome = "no_replica"
    was_sent = False
    may_have_been_billed = False
    retry_after_seconds = NO_REPLICA_RETRY_SECONDS

    def __init__(self) -> None:
        super().__init__("The model's backend is unavailable. Try again shortly.", replica=None)


class BackendTimedOut(BackendError):
    """The first event, the next one or the whole answer took longer than the backend is given."""

    kind = Kind.DEADLINE
    code = "deadline_exceeded"
    outcome = "timed_out"
    should_retry = False

    def __init__(self, *, replica: str | None) -> None:
        super().__init__(
            "The backend did not answer in time. Ask for less, or try again later.", replica=replica
        )
