"""Limits turned into wire types."""

from tollhouse.contract import rate_limits as contract
from tollhouse.limits.types import RateLimit, Scope


def rate_limit(limit: RateLimit) -> contract.RateLimit:
    """A limit as it was set."""
    return contract.RateLimit(
        id=limit.place.text,
        scope=limit.scope.value,
        project_id=str(limit.scope_id) if limit.scope is Scope.PROJECT else None,
        api_key_id=str(limit.scope_id) if limit.scope is Scope.KEY else None,
        owner=limit.owner.value,
        requests_per_minute=limit.traffic.requests_per_minute,
        tokens_per_minute=limit.traffic.tokens_per_minute,
        concurrent_requests=limit.traffic.concurrent_requests,
    )
