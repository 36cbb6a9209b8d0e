"""The management extension for rate limits."""

from tollhouse.base.permissions import Permission
from tollhouse.contract import listing, rate_limits
from tollhouse.contract.operation import Access, Credential, Operation
from tollhouse.contract.origins import Origin
from tollhouse.contract.statuses import READING, WRITING

_RATE_LIMITS = "/manage/v1/organization/rate_limits"

_READ = Access(credential=Credential.ADMIN, permission=Permission.RATE_LIMITS_READ)
_WRITE = Access(credential=Credential.ADMIN, permission=Permission.RATE_LIMITS_WRITE)

LIST_RATE_LIMITS = Operation(
    id="listRateLimits",
    method="GET",
    path=_RATE_LIMITS,
    tag="Rate limits",
    summary="List the rate limits, the operator's included",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-139", "OQ-140"),
    query=listing.ListQuery,
    result=rate_limits.RateLimitList,
    statuses=READING,
)
SET_RATE_LIMIT = Operation(
    id="setRateLimit",
    method="PUT",
    path=_RATE_LIMITS,
    tag="Rate limits",
    summary="Set or replace a rate limit of the organization's own",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-139", "OQ-140"),
    body=rate_limits.SetRateLimit,
    result=rate_limits.RateLimit,
    statuses=WRITING,
)
CLEAR_RATE_LIMIT = Operation(
    id="clearRateLimit",
    method="DELETE",
    path=_RATE_LIMITS,
    tag="Rate limits",
    summary="Remove a rate limit of the organization's own",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-139", "OQ-140"),
    query=rate_limits.ClearRateLimitQuery,
    result=rate_limits.RateLimitDeleted,
    statuses=WRITING,
)
