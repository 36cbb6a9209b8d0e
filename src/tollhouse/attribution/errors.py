"""Errors of attribution."""

from tollhouse.base.errors import InvalidInput


class AttributionDetailGone(InvalidInput):
    """Entries of the range were deleted after their retention, so costs cannot be attributed."""

    param = "start_time"
    template = "Invalid 'start_time': requests of so old a day are not known one by one any more."


class AttributionRangeInvalid(InvalidInput):
    """The range is empty, or has too many days."""

    param = "end_time"
    template = (
        "Invalid 'end_time': it must lie after 'start_time', by at most {self.days_max} days."
    )
    days_max: int
