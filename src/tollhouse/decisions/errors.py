"""How questions about decisions fail."""

from tollhouse.base.errors import InvalidRequest


class DaysEmpty(InvalidRequest):
    """The range ends before it begins."""

    def __init__(self) -> None:
        super().__init__(
            "invalid_value", "Invalid 'end_time': must be after 'start_time'.", param="end_time"
        )


class TooManyDays(InvalidRequest):
    """The range is longer than what is kept."""

    def __init__(self, days_max: int) -> None:
        super().__init__(
            "invalid_value",
            f"Invalid 'end_time': a report covers at most {days_max} days.",
            param="end_time",
        )
