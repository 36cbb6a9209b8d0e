"""Errors of reports."""

from collections.abc import Sequence

from tollhouse.base.errors import GatewayError, InvalidInput, Kind, listed_ids


class ReportProjectNotFound(GatewayError):
    """A project of the filter does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"
    param = "project_ids"
    template = (
        "No project of this organization has {self.ids}. "
        "`GET /manage/v1/organization/projects` lists them."
    )

    def __init__(self, unknown: Sequence[str]) -> None:
        super().__init__(ids=listed_ids(unknown))


class ReportKeyNotFound(GatewayError):
    """A key of the filter does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"
    param = "api_key_ids"
    template = (
        "No project key of this organization has {self.ids}. "
        "`GET /manage/v1/organization/projects/{{project_id}}/api_keys` lists them."
    )

    def __init__(self, unknown: Sequence[str]) -> None:
        super().__init__(ids=listed_ids(unknown))


class ExportRangeTooLong(InvalidInput):
    """The range of an export has too many days."""

    param = "start_time"
    template = (
        "Invalid 'start_time': an export has at most {self.days_max} days. Ask for the rest by "
        "another request."
    )
    days_max: int


class InvalidCursor(InvalidInput):
    """The cursor is not valid, belongs to another organization, or to another report."""

    param = "page"
    template = "Invalid 'page': not the next page of this report. Keep all other parameters."


class DetailIsGone(InvalidInput):
    """Entries of this day were deleted after their retention. Only whole hours are known."""

    template = "Invalid '{self.param}': of so old a day only whole hours are known."
    param: str | None


class HoursAreGone(InvalidInput):
    """Sums by hour of this day were deleted after their retention. Only whole days are known."""

    template = "Invalid '{self.param}': of so old a day only whole days, in UTC, are known."
    param: str | None
