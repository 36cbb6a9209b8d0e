"""Errors of policy decisions."""

from tollhouse.base.errors import InvalidInput


class TooManyDays(InvalidInput):
    """The range is longer than decisions are kept."""

    param = "end_time"
    template = "Invalid 'end_time': a report covers at most {self.days_max} days."
    days_max: int
