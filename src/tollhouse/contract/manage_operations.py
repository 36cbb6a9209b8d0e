"""The management extension under `/manage/v1`, which the specification does not have."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import credits as credits_wire
from tollhouse.contract import (
    keys,
    listing,
    projects,
    rate_limits,
    requests,
    spending_limits,
    usage,
)
from tollhouse.contract.operation import declare

_ORGANIZATION = "/manage/v1/organization"
_PROJECTS = f"{_ORGANIZATION}/projects"
_PROJECT = f"{_PROJECTS}/{{project_id}}"
_PROJECT_KEYS = f"{_PROJECT}/api_keys"
_PROJECT_KEY = f"{_PROJECT_KEYS}/{{api_key_id}}"
_CREDITS = f"{_ORGANIZATION}/credits"
_SPENDING_LIMITS = f"{_ORGANIZATION}/spending_limits"
_RATE_LIMITS = f"{_ORGANIZATION}/rate_limits"
_REQUESTS = f"{_ORGANIZATION}/requests"

_projects_read = partial(declare, tag="Projects", permission=Permission.PROJECTS_READ)
_projects_write = partial(declare, tag="Projects", permission=Permission.PROJECTS_CREATE)
_keys_read = partial(declare, tag="Project keys", permission=Permission.PROJECT_API_KEYS_READ)
_keys_create = partial(
    declare,
    tag="Project keys",
    permission=Permission.PROJECT_API_KEYS_CREATE,
    result=keys.ManagedProjectKey,
    creates_idempotently=True,
)
_keys_revoke = partial(
    declare,
    tag="Project keys",
    permission=Permission.PROJECT_API_KEYS_REVOKE,
    result=keys.ManagedProjectKey,
)
_credits_read = partial(declare, tag="Credits", permission=Permission.BILLING_READ)
_spending_limits_write = partial(
    declare, tag="Spending limits", permission=Permission.SPENDING_LIMITS_WRITE
)
_rate_limits_write = partial(declare, tag="Rate limits", permission=Permission.RATE_LIMITS_WRITE)
_requests_read = partial(declare, tag="Requests", permission=Permission.ACTIVITY_READ)

LIST_PROJECTS = _projects_read(
    "listProjects",
    f"GET {_PROJECTS}",
    "List the projects",
    "OQ-117",
    query=listing.ListQuery,
    result=projects.ProjectList,
)
"""In order of creation, archived ones included."""
CREATE_PROJECT = _projects_write(
    "createProject",
    f"POST {_PROJECTS}",
    "Create a project",
    "OQ-117",
    body=projects.CreateProject,
    result=projects.Project,
    creates_idempotently=True,
)
"""A project owns keys, and can have limits and policies of its own."""
RETRIEVE_PROJECT = _projects_read(
    "retrieveProject", f"GET {_PROJECT}", "Read a project", "OQ-117", result=projects.Project
)
"""An archived one too."""
EDIT_PROJECT = _projects_write(
    "editProject",
    f"PATCH {_PROJECT}",
    "Change a project",
    "OQ-86",
    "OQ-117",
    body=projects.EditProject,
    result=projects.Project,
    accepts_post=True,
)
"""Changes the fields that are sent."""
LIST_PROJECT_KEYS = _keys_read(
    "listProjectKeys",
    f"GET {_PROJECT_KEYS}",
    "List a project's keys",
    "OQ-87",
    "OQ-154",
    query=listing.ListQuery,
    result=keys.ProjectKeyList,
)
"""In order of creation, without values. Revoked ones are listed too."""
RETRIEVE_PROJECT_KEY = _keys_read(
    "retrieveProjectKey",
    f"GET {_PROJECT_KEY}",
    "Read a project key",
    "OQ-87",
    "OQ-154",
    result=keys.ManagedProjectKey,
)
"""Without its value, which only the creation returns."""
CREATE_MANAGED_PROJECT_KEY = _keys_create(
    "createManagedProjectKey",
    f"POST {_PROJECT_KEYS}",
    "Create a project key that expires, or may do less",
    "OQ-86",
    "OQ-151",
    body=keys.CreateManagedProjectKey,
)
"""The `value` is in this answer alone, and for 24 hours in a repetition with the same `Idempotency-
Key`."""
ROTATE_PROJECT_KEY = _keys_create(
    "rotateProjectKey",
    f"POST {_PROJECT_KEY}/rotate",
    "Give a project key a new secret",
    "OQ-150",
    body=keys.RotateProjectKey,
)
"""The key keeps its ID. The new `value` is in this answer alone; the old one works on for
`overlap_seconds`. After a leak, send 0."""
END_PREVIOUS_VALUE = _keys_revoke(
    "endPreviousProjectKeyValue",
    f"POST {_PROJECT_KEY}/end_previous",
    "End the value before the last rotation",
    "OQ-150",
)
"""The old value fails from then on, before its overlap is over; the new one works on. Nothing
changes if no old value works."""
SUSPEND_PROJECT_KEY = _keys_revoke(
    "suspendProjectKey", f"POST {_PROJECT_KEY}/suspend", "Suspend a project key", "OQ-87"
)
"""Requests with the key fail until it is resumed."""
RESUME_PROJECT_KEY = _keys_revoke(
    "resumeProjectKey",
    f"POST {_PROJECT_KEY}/resume",
    "End the suspension of a project key",
    "OQ-87",
)
"""The key works again, with the same value."""
REVOKE_PROJECT_KEY = _keys_revoke(
    "revokeProjectKey", f"POST {_PROJECT_KEY}/revoke", "Revoke a project key for good", "OQ-87"
)
"""Requests with the key fail from then on. Its costs stay."""
RETRIEVE_CREDITS = _credits_read(
    "retrieveCredits",
    f"GET {_CREDITS}",
    "Read the balance",
    "OQ-138",
    "OQ-167",
    result=credits_wire.Credits,
)
"""What was paid in, what is held for requests in progress, and what is left."""
LIST_CREDIT_ENTRIES = _credits_read(
    "listCreditEntries",
    f"GET {_CREDITS}/entries",
    "List what the credit is made of",
    "OQ-138",
    "OQ-168",
    query=listing.ListQuery,
    result=credits_wire.CreditEntryList,
)
"""Payments, gifts and corrections, newest first."""
CREATE_TEST_PAYMENT = declare(
    "createTestPayment",
    f"POST {_CREDITS}/test_payments",
    "Get credit in a sandbox without paying",
    "OQ-169",
    tag="Credits",
    permission=Permission.BILLING_WRITE,
    body=credits_wire.CreateTestPayment,
    result=credits_wire.CreditEntry,
    creates_idempotently=True,
)
"""Only where the gateway is a sandbox."""
LIST_SPENDING_LIMITS = declare(
    "listSpendingLimits",
    f"GET {_SPENDING_LIMITS}",
    "List the spending limits with their use",
    "OQ-138",
    "OQ-170",
    tag="Spending limits",
    permission=Permission.SPENDING_LIMITS_READ,
    query=listing.ListQuery,
    result=spending_limits.SpendingLimitList,
)
"""Of the organization, its projects and keys, each with what is used and left."""
SET_SPENDING_LIMIT = _spending_limits_write(
    "setSpendingLimit",
    f"PUT {_SPENDING_LIMITS}",
    "Set or change a spending limit",
    "OQ-138",
    "OQ-170",
    body=spending_limits.SetSpendingLimit,
    result=spending_limits.SpendingLimit,
)
"""Requests that could exceed the limit are refused with 402."""
CLEAR_SPENDING_LIMIT = _spending_limits_write(
    "clearSpendingLimit",
    f"DELETE {_SPENDING_LIMITS}",
    "Remove a spending limit",
    "OQ-138",
    "OQ-170",
    query=spending_limits.ClearSpendingLimitQuery,
    result=spending_limits.SpendingLimitDeleted,
)
"""Spending is then bounded by the other limits and the credit alone."""
LIST_RATE_LIMITS = declare(
    "listRateLimits",
    f"GET {_RATE_LIMITS}",
    "List the rate limits, the operator's included",
    "OQ-139",
    "OQ-140",
    tag="Rate limits",
    permission=Permission.RATE_LIMITS_READ,
    query=listing.ListQuery,
    result=rate_limits.RateLimitList,
)
"""Of the organization, its projects and keys."""
SET_RATE_LIMIT = _rate_limits_write(
    "setRateLimit",
    f"PUT {_RATE_LIMITS}",
    "Set or replace a rate limit of the organization's own",
    "OQ-139",
    "OQ-140",
    body=rate_limits.SetRateLimit,
    result=rate_limits.RateLimit,
)
"""Requests beyond the limit are refused with 429. The operator's limits hold as well."""
CLEAR_RATE_LIMIT = _rate_limits_write(
    "clearRateLimit",
    f"DELETE {_RATE_LIMITS}",
    "Remove a rate limit of the organization's own",
    "OQ-139",
    "OQ-140",
    query=rate_limits.ClearRateLimitQuery,
    result=rate_limits.RateLimitDeleted,
)
"""The operator's limits stay."""
REPORT_USAGE = declare(
    "reportUsage",
    f"GET {_ORGANIZATION}/usage",
    "Report tokens, images and requests in hourly or daily buckets",
    "OQ-138",
    "OQ-171",
    tag="Reports",
    permission=Permission.BILLING_READ,
    query=usage.UsageQuery,
    result=usage.UsagePage,
)
"""Settled requests with their amounts. Requests without a final cost are in no sum; a header has
their number."""
REPORT_COMPLETIONS = declare(
    "reportCompletions",
    f"GET {_ORGANIZATION}/usage/completions",
    "Report tokens and requests in OpenAI's form",
    "OQ-138",
    "OQ-171",
    tag="Reports",
    permission=Permission.BILLING_READ,
    query=usage.CompletionsQuery,
    result=usage.CompletionsPage,
)
"""The same settled requests as in the report of usage, as OpenAI's SDK reads them."""
EXPORT_COSTS = declare(
    "exportCosts",
    f"GET {_ORGANIZATION}/costs/focus",
    "Export costs as CSV in the format FOCUS 1.2",
    "OQ-138",
    "OQ-238",
    tag="Reports",
    permission=Permission.BILLING_READ,
    query=usage.FocusQuery,
    result=None,
)
"""One row for each line item, key and UTC day, at most 400 days."""
LIST_REQUESTS = _requests_read(
    "listRequests",
    f"GET {_REQUESTS}",
    "List what became of requests",
    "OQ-174",
    query=requests.RequestsQuery,
    result=requests.RequestRecordList,
)
"""Newest first, with status, cost and times, without content."""
RETRIEVE_REQUEST = _requests_read(
    "retrieveRequest",
    f"GET {_REQUESTS}/{{request_id}}",
    "Read what became of a request",
    "OQ-173",
    result=requests.RequestDetails,
)
"""By the value of `X-Request-ID`: why it failed, what it cost, and what each policy decided."""
REPORT_REQUESTS = _requests_read(
    "reportRequests",
    f"GET {_ORGANIZATION}/request_rollups",
    "Count requests, failures and tokens by the hour",
    "OQ-175",
    query=requests.RequestRollupsQuery,
    result=requests.RequestRollupPage,
)
"""By status and code, with times, for at most 744 hours."""
