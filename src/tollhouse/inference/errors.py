"""Errors that the pipeline itself raises."""

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable


class SessionInvalid(GatewayError):
    """A session header is empty, too long, or there twice."""

    kind = Kind.INVALID
    code = "invalid_value"
    template = "Invalid '{self.param}': expected one value of 1 to {self.length_max} characters."
    param: str | None
    length_max: int


class ShuttingDown(ServiceUnavailable):
    """The worker shuts down and could not finish the answer in time."""

    template = "The gateway is shutting down. Try again."


class AnswerTooLong(GatewayError):
    """The backend sent more than any output bound allows."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"
    template = "The backend's answer is too long."


class AnswerExpired(GatewayError):
    """The caller read so slowly that the deadline of the credit held for its request passed."""

    kind = Kind.DEADLINE
    code = "deadline_exceeded"
    should_retry = False
    template = (
        "The answer was not read in time. What was generated is charged. Read faster, or ask for "
        "less."
    )


class CountedBytesLimited(GatewayError):
    """The organization has counted as many bytes in this minute as it may. Counting is free."""

    kind = Kind.LIMITED
    code = "rate_limit_exceeded"
    template = (
        "The organization may have {self.bytes_per_minute} bytes per minute counted in each "
        "worker, and they are used up. Try again in {self.retry_after_seconds} s, or let the "
        "operator raise quotas.counted_bytes_per_minute."
    )
    bytes_per_minute: int
    retry_after_seconds: int | None
