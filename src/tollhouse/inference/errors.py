"""How the pipeline itself fails."""

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable
from tollhouse.judging.errors import PolicyEvaluatorUnavailable


class UnjudgedAnswer(GatewayError):
    """An answer that was made as it was asked for, is charged, and may not leave unjudged."""

    kind = Kind.UNAVAILABLE
    is_policy_failure = True
    should_retry = False


class AnswerTooLongToHold(UnjudgedAnswer):
    """A policy would have to judge all of the answer, and no more of it can be held back."""

    code = "policy_answer_too_long"

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and the answer is too long to be held back until it is judged. "
            "The model's work is charged. Ask for less."
        )


class TooMuchHeldBack(UnjudgedAnswer):
    """The organization's own answers that are being judged take all of its share of the worker."""

    code = "policy_answers_held"

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and the organization has too much held back at once until it is "
            "judged. The model's work is charged. Ask for less at once."
        )


class AnswerTooLongToJudge(UnjudgedAnswer):
    """Judging all of the answer would exceed the judge's budget. What was asked for was made."""

    code = AnswerTooLongToHold.code

    def __init__(self) -> None:
        super().__init__(
            "A policy applies, and the answer is too long to be judged. "
            "The model's work is charged. Ask for less."
        )


class NoRoomToHold(PolicyEvaluatorUnavailable):
    """The worker holds back as many answers as it can, of all organizations together."""

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
    """The worker ends; what it could not finish in time is ended by an event."""

    def __init__(self) -> None:
        super().__init__("The gateway is shutting down. Try again.")


class AnswerTooLong(GatewayError):
    """A backend says more than any bound on its output allows."""

    kind = Kind.BACKEND_FAILED
    code = "backend_error"

    def __init__(self) -> None:
        super().__init__("The backend's answer is too long.")
