"""How limits refuse, and how setting them fails."""

from typing import Final

from tollhouse.base.errors import GatewayError, InvalidRequest, Kind
from tollhouse.limits.types import LimitPlace, Scope

_NAMES: Final = {
    Scope.ORGANIZATION: "organization",
    Scope.PROJECT: "project",
    Scope.KEY: "key",
}


class Limited(GatewayError):
    """The traffic of a scope is at its limit; waiting helps, and the answer says how long."""

    kind = Kind.LIMITED
    code = "rate_limit_exceeded"

    def __init__(
        self, message: str, *, retry_after_seconds: int, headers: tuple[tuple[str, str], ...]
    ) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self._headers = headers

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What is left of the limits, as on every other answer."""
        return self._headers


class RequestsLimited(Limited):
    """Too many requests within a minute."""

    def __init__(
        self,
        scope: Scope,
        limit: int,
        *,
        retry_after_seconds: int,
        headers: tuple[tuple[str, str], ...],
    ) -> None:
        super().__init__(
            f"The {_NAMES[scope]}'s limit of {limit} requests per minute is reached."
            f" Try again in {retry_after_seconds} s.",
            retry_after_seconds=retry_after_seconds,
            headers=headers,
        )


class TokensLimited(Limited):
    """Too many tokens within a minute, counting what the request may use at most."""

    def __init__(
        self,
        scope: Scope,
        limit: int,
        *,
        needed: int,
        retry_after_seconds: int,
        headers: tuple[tuple[str, str], ...],
    ) -> None:
        super().__init__(
            f"The {_NAMES[scope]}'s limit of {limit} tokens per minute cannot cover the {needed}"
            f" that this request may use. Try again in {retry_after_seconds} s.",
            retry_after_seconds=retry_after_seconds,
            headers=headers,
        )


class ConcurrencyLimited(Limited):
    """Too many requests at once."""

    code = "concurrency_limit_exceeded"

    def __init__(self, scope: Scope, limit: int, *, headers: tuple[tuple[str, str], ...]) -> None:
        super().__init__(
            f"The {_NAMES[scope]}'s limit of {limit} requests at once is reached."
            " Try again when one of them has ended.",
            retry_after_seconds=1,
            headers=headers,
        )


class CountingLost(Exception):
    """Redis did not answer as it should; whoever waited counts without it."""


class LimitOfNothing(InvalidRequest):
    """A limit bounds something; to bound nothing, clear it."""

    def __init__(self) -> None:
        super().__init__(
            "invalid_parameter_combination",
            "Send at least one of 'requests_per_minute', 'tokens_per_minute' and"
            " 'concurrent_requests' that is not null.",
        )


class LimitedProjectNotFound(GatewayError):
    """Unknown, or another organization's: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such project in this organization. "
            "`GET /manage/v1/organization/projects` lists them.",
            param="project_id",
        )


class LimitedKeyNotFound(GatewayError):
    """Unknown, another organization's, or an Admin key: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such project key in this organization. "
            "`GET /manage/v1/organization/projects/{project_id}/api_keys` lists them.",
            param="api_key_id",
        )


class LimitNotFound(GatewayError):
    """No such limit is set."""

    kind = Kind.NOT_FOUND
    code = "rate_limit_not_found"

    def __init__(self, place: LimitPlace) -> None:
        super().__init__(f"The {place.owner} has set no rate limit for this {place.scope}.")
