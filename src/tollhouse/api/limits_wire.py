"""Conversion of rate limits into wire types."""

from tollhouse.contract import rate_limits as contract
from tollhouse.limits.types import LimitScope, RateLimit


def rate_limit(limit: RateLimit) -> contract.RateLimit:
    """Convert a rate limit."""
    return contract.RateLimit(
        id=limit.place.text,
        scope=limit.scope.value,
        project_id=str(limit.scope_id) if limit.scope is LimitScope.PROJECT else None,
        api_key_id=str(limit.scope_id) if limit.scope is LimitScope.KEY else None,
        owner=limit.owner.value,
        requests_per_minute=limit.traffic.requests_per_minute,
        tokens_per_minute=limit.traffic.tokens_per_minute,
        concurrent_requests=limit.traffic.concurrent_requests,
    )
