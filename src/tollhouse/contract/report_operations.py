"""The management extension on usage, exported costs and records of requests."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import requests, usage
from tollhouse.contract.command import Command, Words
from tollhouse.contract.operation import declare

_ORGANIZATION = "/manage/v1/organization"
_REQUESTS = f"{_ORGANIZATION}/requests"

_requests_read = partial(declare, tag="Requests", permission=Permission.ACTIVITY_READ)

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
    command=Command(
        "usage",
        (
            "Show tokens, requests and their cost by hour or day.\n\nOnly requests with a "
            "final cost are counted."
        ),
        example="--from 7d --by model",
        columns=(
            "start_time project_id api_key_id model requests input_tokens "
            "cached_input_tokens output_tokens amount"
        ),
        starts="30d",
        words={
            "group_by": Words(
                "by",
                "Group by project_id, api_key_id or model. Can be given several times.",
            ),
        },
    ),
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
    command=Command(
        "usage completions",
        "Show tokens and requests by hour or day in OpenAI's form.",
        example="--from 7d --json",
        columns=(
            "start_time project_id api_key_id model num_model_requests input_tokens "
            "input_cached_tokens output_tokens"
        ),
        starts="30d",
    ),
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
    command=Command(
        "costs export",
        (
            "Write the costs as CSV in the format FOCUS 1.2.\n\nOne row for each line item, "
            "key and UTC day, at most 400 days."
        ),
        example="--from 2026-08-01 --output costs.csv",
        starts="30d",
    ),
)
"""One row for each line item, key and UTC day, at most 400 days."""
LIST_REQUESTS = _requests_read(
    "listRequests",
    f"GET {_REQUESTS}",
    "List what became of requests",
    "OQ-174",
    query=requests.RequestsQuery,
    result=requests.RequestRecordList,
    command=Command(
        "requests",
        "List the latest requests, newest first. `tollhouse request ID` shows one in full.",
        example="--status 5xx --limit 50",
        columns=(
            "created_at id status error_code blocked_by.name model timings.total_ms cost "
            "project_id api_key_id"
        ),
        shown_max=20,
        words={
            "project_id": Words("project", "Only requests of this project, by name or ID."),
            "api_key_id": Words("key", "Only requests with this project key, by name or ID."),
            "policy_id": Words(
                "policy", "Only requests on which this policy matched or could not be evaluated."
            ),
            "label": Words("label", "Only requests with this label."),
            "start_time": Words(
                "from", "Only requests that began then or later, UTC: a date, a time, or 7d."
            ),
            "end_time": Words("to", "Only requests that began before then, UTC."),
        },
    ),
)
"""Newest first, with status, cost and times, without content."""
RETRIEVE_REQUEST = _requests_read(
    "retrieveRequest",
    f"GET {_REQUESTS}/{{request_id}}",
    "Read what became of a request",
    "OQ-173",
    result=requests.RequestDetails,
    command=Command(
        "request",
        (
            "Show the outcome of a request, by its X-Request-ID.\n\nShows whether the caller, "
            "the gateway or the backend failed, what it cost, and what every policy decided. A "
            "record appears a second after its request has ended."
        ),
        example="01890a5d-ac96-774b-bcce-b302099a8057",
        arguments="request_id",
    ),
)
"""By the value of `X-Request-ID`: why it failed, what it cost, and what each policy decided."""
REPORT_REQUESTS = _requests_read(
    "reportRequests",
    f"GET {_ORGANIZATION}/request_rollups",
    "Count requests, failures and tokens by the hour",
    "OQ-175",
    query=requests.RequestRollupsQuery,
    result=requests.RequestRollupPage,
    command=Command(
        "requests report",
        "Count requests, failures and tokens by the hour.",
        example="--from 1d --by model",
        columns=(
            "start_time project_id api_key_id model requests failed refused client_errors "
            "input_tokens output_tokens mean_total_ms"
        ),
        starts="1d",
        words={
            "group_by": Words("by", "Group by this field."),
        },
    ),
)
"""By status and code, with times, for at most 744 hours."""
