"""Errors of rate limits."""

from tollhouse.base.errors import GatewayError, InvalidInput, Kind
from tollhouse.limits.types import LimitId, LimitScope


class Limited(GatewayError):
    """The traffic has reached a rate limit. The response says how long to wait."""

    kind = Kind.LIMITED
    code = "rate_limit_exceeded"
    scope: LimitScope
    limit: int
    limit_headers: tuple[tuple[str, str], ...]

    @property
    def subject(self) -> str:
        """The name of the scope in a message."""
        return "key" if self.scope is LimitScope.KEY else self.scope

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of the limits, which every other response has too."""
        return self.limit_headers


class RequestsLimited(Limited):
    """The organization, project or key sent too many requests within a minute."""

    template = (
        "The {self.subject}'s limit of {self.limit} requests per minute is reached."
        " Try again in {self.retry_after_seconds} s."
    )
    retry_after_seconds: int | None


class TokensLimited(Limited):
    """The tokens that the request may use exceed what is left of a limit per minute."""

    template = (
        "The {self.subject}'s limit of {self.limit} tokens per minute cannot cover the"
        " {self.needed} that this request may use. Try again in {self.retry_after_seconds} s."
    )
    needed: int
    retry_after_seconds: int | None


class ConcurrencyLimited(Limited):
    """The organization, project or key has too many requests in progress."""

    code = "concurrency_limit_exceeded"
    retry_after_seconds = 1
    template = (
        "The {self.subject}'s limit of {self.limit} requests at once is reached."
        " Try again when one of them has ended."
    )


class CounterUnavailable(Exception):
    """Redis did not answer correctly. The caller counts without it."""


class LimitOfNothing(InvalidInput):
    """The rate limit has no bound. To remove a limit, clear it."""

    code = "invalid_parameter_combination"
    template = (
        "Send at least one of 'requests_per_minute', 'tokens_per_minute' and 'concurrent_requests' "
        "that is not null."
    )


class LimitedProjectNotFound(GatewayError):
    """The project does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"
    param = "project_id"
    template = (
        "No such project in this organization. `GET /manage/v1/organization/projects` lists them."
    )


class LimitedKeyNotFound(GatewayError):
    """The project key does not exist, belongs to another organization, or is an Admin key."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"
    param = "api_key_id"
    template = (
        "No such project key in this organization. `GET "
        "/manage/v1/organization/projects/{{project_id}}/api_keys` lists them."
    )


class LimitNotFound(GatewayError):
    """The rate limit is not set."""

    kind = Kind.NOT_FOUND
    code = "rate_limit_not_found"
    template = "The {self.place.owner} has set no rate limit for this {self.place.scope}."
    place: LimitId
