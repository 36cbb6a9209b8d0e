"""How the pipeline itself fails."""

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable
from tollhouse.judging.errors import PolicyEvaluatorUnavailable


class UnjudgedAnswer(GatewayError):
    """An answer that was made as it was asked for, is charged, and may not leave unjudged."""

    kind = Kind.UNAVAILABLE
    is_policy_failure = True
    should_retry = False


class AnswerTooLongToHold(UnjudgedAnswer):
    """A policy must judge the whole answer, and it is longer than the gateway may buffer."""

    code = "policy_answer_too_long"

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and the answer is too long to be held back until it is judged. "
            "The model's work is charged. Ask for less."
        )


class TooMuchHeldBack(UnjudgedAnswer):
    """Answers of the organization that wait for a verdict fill its share of a worker's buffer."""

    code = "policy_answers_held"

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and the organization has too much held back at once until it is "
            "judged. The model's work is charged. Ask for less at once."
        )


class AnswerTooLongToJudge(UnjudgedAnswer):
    """Judging the whole answer would exceed the judge's budget. The model's work is charged."""

    code = AnswerTooLongToHold.code

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and the answer is too long to be judged. "
            "The model's work is charged. Ask for less."
        )


class AnswerNotEvaluable(PolicyEvaluatorUnavailable):
    """The answer has a part that cannot be shown to the judge. Its caller did not write it."""

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and the model's answer has a part that is not text, which no judge "
            "can read. Nothing is charged."
        )


class NoRoomToHold(PolicyEvaluatorUnavailable):
    """Answers of all organizations that wait for a verdict fill the worker's buffer."""

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and too many answers are being judged now. Nothing is charged."
        )


class SessionInvalid(GatewayError):
    """A session header is empty, too long, or there twice."""

    kind = Kind.INVALID
    code = "invalid_value"

    def __init__(self, name: str, *, length_max: int) -> None:
        super().__init__(
            f"Invalid '{name}': expected one value of 1 to {length_max} characters.", param=name
        )


class ShuttingDown(ServiceUnavailable):
    """The worker shuts down and could not finish the answer in time."""

    def __init__(self) -> None:
        super().__init__("The gateway is shutting down. Try again.")


class AnswerTooLong(GatewayError):
    """The backend sent more than any output bound allows."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"

    def __init__(self) -> None:
        super().__init__("The backend's answer is too long.")


class AnswerExpired(GatewayError):
    """The caller read so slowly that the deadline of the credit held for its request passed."""

    kind = Kind.DEADLINE
    code = "deadline_exceeded"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "The answer was not read in time. What was generated is charged. Read faster, or ask "
            "for less."
        )


class OutputBufferExceeded(GatewayError):
    """The organization's unread answers take all of its share of the worker's buffer."""

    kind = Kind.UNAVAILABLE
    code = "output_buffer_exceeded"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "Too many bytes of the organization's answers wait to be read. What was generated is "
            "charged. Read answers faster, or ask for fewer at once."
        )


class CountedBytesLimited(GatewayError):
    """The organization has counted as many bytes in this minute as it may. Counting is free."""

    kind = Kind.LIMITED
    code = "rate_limit_exceeded"

    def __init__(self, bytes_per_minute: int, *, retry_after_seconds: int) -> None:
        super().__init__(
            f"The organization may have {bytes_per_minute} bytes per minute counted in each worker,"
            f" and they are used up. Try again in {retry_after_seconds} s, or let the operator"
            " raise quotas.counted_bytes_per_minute."
        )
        self.retry_after_seconds = retry_after_seconds
