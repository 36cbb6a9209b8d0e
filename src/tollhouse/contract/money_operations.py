"""The management extension on credit, spending limits and rate limits."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import credits as credits_wire
from tollhouse.contract import listing, rate_limits, spending_limits
from tollhouse.contract.command import Command, Words
from tollhouse.contract.operation import declare

_ORGANIZATION = "/manage/v1/organization"
_CREDITS = f"{_ORGANIZATION}/credits"
_SPENDING_LIMITS = f"{_ORGANIZATION}/spending_limits"
_RATE_LIMITS = f"{_ORGANIZATION}/rate_limits"

_credits_read = partial(declare, tag="Credits", permission=Permission.BILLING_READ)
_spending_limits_write = partial(
    declare, tag="Spending limits", permission=Permission.SPENDING_LIMITS_WRITE
)
_rate_limits_write = partial(declare, tag="Rate limits", permission=Permission.RATE_LIMITS_WRITE)

RETRIEVE_CREDITS = _credits_read(
    "retrieveCredits",
    f"GET {_CREDITS}",
    "Read the balance",
    "OQ-138",
    "OQ-167",
    result=credits_wire.Credits,
    command=Command(
        "credits show",
        "Show the balance, and what is held for requests in progress.",
        example="--json",
    ),
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
    command=Command(
        "credits history",
        "List every grant and correction, newest first.",
        columns="created_at kind amount actor reason id",
    ),
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
    command=Command(
        "credits test-payment",
        "Add credit in a sandbox, without paying.",
        example="25",
        arguments="amount",
        is_creation=True,
    ),
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
    command=Command(
        "caps show",
        "List the caps and how much of each is used.",
        example="--json",
        columns="id limit used held remaining alert_percent is_alerting",
    ),
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
    command=Command(
        "caps set",
        (
            "Set or change a cap in US dollars. Earlier spending in its period "
            "counts.\n\nWithout --project and --key, the organization is capped."
        ),
        example="100 --period month",
        arguments="limit",
        words={
            "project_id": Words(
                "project", "Cap this project, by name or ID, not the organization."
            ),
            "api_key_id": Words(
                "key", "Cap this project key, by name or ID, not the organization."
            ),
        },
    ),
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
    command=Command(
        "caps clear",
        "Remove a cap. Spending is still counted, for a later cap.",
        example="--period month",
        words={
            "project_id": Words("project", "The capped project, by name or ID."),
            "api_key_id": Words("key", "The capped project key, by name or ID."),
        },
    ),
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
    command=Command(
        "limits show",
        "List the operator's limits and the organization's own. The lower one of each applies.",
        example="--json",
        columns="id requests_per_minute tokens_per_minute concurrent_requests",
    ),
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
    command=Command(
        "limits set",
        (
            "Set or replace a limit of the organization's own. An option that is left out sets "
            "no limit.\n\nWithout --project and --key, the organization is limited."
        ),
        example="--requests 600 --concurrent 20",
        words={
            "project_id": Words(
                "project", "Limit this project, by name or ID, not the organization."
            ),
            "api_key_id": Words(
                "key", "Limit this project key, by name or ID, not the organization."
            ),
        },
    ),
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
    command=Command(
        "limits clear",
        "Remove a limit of the organization's own. The operator's stay.",
        example="--project search",
        words={
            "project_id": Words("project", "The limited project, by name or ID."),
            "api_key_id": Words("key", "The limited project key, by name or ID."),
        },
    ),
)
"""The operator's limits stay."""
