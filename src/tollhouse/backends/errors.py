"""Failures of a call to a backend, and of the transport below it.

No message contains a host, a header or a credential: callers read them.
"""

from typing import ClassVar

from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX, GatewayError, Kind

BUSY_RETRY_SECONDS = 1
NO_REPLICA_RETRY_SECONDS = 5
_AGAIN = "Send the request again. If it fails again, tell the operator the request ID."


class TransportError(Exception):
    """The upstream gave no answer, or not all of it."""


class NotConnected(TransportError):
    """No connection was established. No byte of the request was sent."""


class NotTrusted(NotConnected):
    """The upstream's certificate was refused. `reason` is for operators: it may have the host."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class ConnectionBroken(TransportError):
    """The connection ended before the answer did."""


class NotHttp(TransportError):
    """The answer is not valid HTTP/1.1."""


class UpstreamBodyTooLarge(TransportError):
    """The body of the answer exceeds its bound."""


class TookTooLong(TransportError):
    """The deadline of the task that waits for the answer has passed."""


class BackendError(GatewayError):
    """A call to a backend failed.

    `may_move`: another replica or model may answer instead. `may_have_been_billed`: a provider that
    bills without an answer may bill this call, which none does for a complete answer with an error
    status. `blames_replica`: the failure counts against the replica. `is_silence`: the replica sent
    nothing in time.
    """

    outcome: ClassVar[str]
    may_move: ClassVar[bool] = True
    may_have_been_billed: ClassVar[bool] = True
    blames_replica: ClassVar[bool] = True
    is_silence: ClassVar[bool] = False
    replica: str | None


class BackendRejected(BackendError):
    """The backend refuses the request as invalid. The message has the backend's reason."""

    kind = Kind.PROVIDER_INVALID
    code = "provider_validation_failed"
    outcome = "rejected"
    may_move = False
    may_have_been_billed = False
    blames_replica = False
    template = "The backend refused the request{self.end}"

    def __init__(self, reason: str | None, *, replica: str) -> None:
        self.end = f": {reason}" if reason else "."
        super().__init__(replica=replica)

    def without_words(self) -> "BackendRejected":
        """Return the refusal without the backend's reason, which no policy has evaluated."""
        return BackendRejected(None, replica=self.replica or "")


class PromptTooLong(BackendRejected):
    """The prompt, or the prompt and the asked output, exceed the model's context."""

    kind = Kind.INVALID
    code = "context_length_exceeded"
    template = (
        # By the words of this sentence, and by `This model's maximum context length is`, clients
        # that do not look at the code shorten the conversation.
        "The prompt is too long: the request exceeds the context window. This model's maximum "
        "context length is {self.context_tokens} tokens. The prompt has {self.size}{self.asked}. "
        "Shorten the prompt, or ask for less output."
    )

    def __init__(
        self, *, prompt_tokens: int | None, output_tokens: int, context_tokens: int, replica: str
    ) -> None:
        self.context_tokens, self.output_tokens = context_tokens, output_tokens
        self.asked = f", and the request asks for {output_tokens} more" if output_tokens else ""
        self.size = "too many tokens" if prompt_tokens is None else f"{prompt_tokens} tokens"
        # Clients of Messages shorten the conversation, or the output, by these words of Anthropic.
        if prompt_tokens is None:
            self.messages_words = f"prompt is too long for the maximum of {context_tokens} tokens"
        elif prompt_tokens >= context_tokens:
            self.messages_words = (
                f"prompt is too long: {prompt_tokens} tokens > {context_tokens} maximum"
            )
        else:
            self.messages_words = (
                f"input length and `max_tokens` exceed context limit: {prompt_tokens} + "
                f"{output_tokens} > {context_tokens}, decrease input length or `max_tokens` and "
                "try again"
            )
        super().__init__(None, replica=replica)

    def without_words(self) -> BackendRejected:
        """Return this error: its words are the gateway's own."""
        return self


class BackendFailed(BackendError):
    """The backend answered with a status of failure, or an error event, before any output."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"
    outcome = "failed"
    may_have_been_billed = False
    template = "The backend failed to answer. " + _AGAIN


class BackendMalformed(BackendFailed):
    """The backend's answer is not valid HTTP, JSON or events, or is an error with status 200."""

    outcome = "nonsense"
    may_have_been_billed = True


class BackendUnauthorized(BackendFailed):
    """The backend refuses the gateway's credential or account. The operator has to correct it."""

    blames_replica = False


class BackendUnreachable(BackendFailed):
    """The gateway could not connect to the backend. Nothing was sent."""

    outcome = "unreachable"
    template = "The backend could not be reached. " + _AGAIN


class BackendHungUp(BackendFailed):
    """The connection ended before an answer. It may have been an idle one that was closing."""

    outcome = "hung_up"
    may_have_been_billed = True
    template = "The backend closed the connection without an answer. " + _AGAIN


class BackendBroke(BackendError):
    """The answer began and did not end."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"
    outcome = "broke"
    template = "The backend's answer broke off. " + _AGAIN


class BackendBusy(BackendError):
    """The backend is overloaded (429, 529), or all connections to it are in use."""

    kind = Kind.UNAVAILABLE
    code = "server_is_overloaded"
    outcome = "busy"
    may_have_been_billed = False
    template = "The model's backend is overloaded. Try again later."

    def __init__(self, *, replica: str | None, cooldown_seconds: int | None = None) -> None:
        super().__init__(replica=replica)
        # How long the replica asks for no further call, if it says so.
        self.cooldown_seconds = cooldown_seconds
        wait_seconds = BUSY_RETRY_SECONDS if cooldown_seconds is None else cooldown_seconds
        self.retry_after_seconds = max(1, min(wait_seconds, RETRY_AFTER_SECONDS_MAX))


class NoReplica(BackendError):
    """No replica of the backend is available."""

    kind = Kind.UNAVAILABLE
    code = "service_unavailable"
    outcome = "no_replica"
    may_have_been_billed = False
    blames_replica = False
    retry_after_seconds = NO_REPLICA_RETRY_SECONDS
    template = "The model's backend is unavailable. Try again shortly."
    replica: str | None = None


class BackendTimedOut(BackendError):
    """The whole answer took longer than its timeout. It may be long by right."""

    kind = Kind.DEADLINE
    code = "deadline_exceeded"
    outcome = "timed_out"
    blames_replica = False
    should_retry = False
    template = "The backend did not answer in time. Ask for less, or try again later."


class BackendSilent(BackendTimedOut):
    """The first or the next event of an answer, or a whole one that has a bound, was not there."""

    outcome = "silent"
    blames_replica = True
    is_silence = True
