"""How the pipeline itself fails."""

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable


class PolicyEvaluatorUnavailable(GatewayError):
    """A policy would have to decide and nothing can ask it: never a silent pass."""

    kind = Kind.UNAVAILABLE
    code = "policy_evaluator_unavailable"
    is_policy_failure = True
    should_retry = False

    def __init__(self) -> None:
        super().__init__("A policy applies to this request and cannot be evaluated now.")


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
