"""How money fails."""

from tollhouse.base.errors import GatewayError, InvalidRequest, Kind


class InvalidPrice(InvalidRequest):
    """A price that cannot be a whole number of pico-dollars, or is no plain decimal."""

    def __init__(self, text: str) -> None:
        super().__init__(
            "invalid_value",
            f"Invalid price '{text}': expected US dollars as a plain decimal such as '0.0000025',"
            " with at most 12 decimals, at most 9223372.036854775807.",
        )


class ReservationTooLarge(GatewayError):
    """The worst case is more than one hold can be; fewer completions or tokens would fit."""

    kind = Kind.UNCOVERED
    code = "reservation_too_large"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "The request could cost more than 9.2 million US dollars."
            " Lower the output bound or the number of completions."
        )
