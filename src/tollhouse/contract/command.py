"""How the command line offers an operation: `tollhouse NOUN VERB`, made from its declaration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class Command:
    """The verb of an operation. Several names in one text stand with spaces between them.

    `name`: noun and verb. `help`: begins with one sentence that says what the verb does.
    `example`: what follows the name. `arguments`: fields of the path or the body that are given by
    position; all others are options. `columns`: the table of a list, as paths with dots.
    `question`: asked before the act, and named after its last path parameter. `is_creation`: the
    same command line creates only once a day. `starts`: how long ago a report begins, when no
    beginning is given. `shown_max`: how many items a list shows, when no limit is given.
    `words`: options and helps that differ from `OPTIONS`.
    """

    name: str
    help: str
    example: str = ""
    arguments: str = ""
    columns: str = ""
    question: str = ""
    is_creation: bool = False
    starts: str = ""
    shown_max: int = 10_000
    words: Mapping[str, "Words"] = field(default_factory=dict[str, "Words"])

    @property
    def noun(self) -> str:
        """The first word."""
        return self.name.partition(" ")[0]


class Words(NamedTuple):
    """The name of an option, or of an argument, and its help."""

    name: str
    help: str


_PROJECT: Final = Words("project", "The project, by name or ID.")
_KEY: Final = Words("key", "The project key, by name or ID.")
_MODEL: Final = Words("model", "Only this model. Can be given several times.")
_THRESHOLD: Final = Words(
    "match-threshold-basis-points", "The lowest score that is a match, of 10000."
)

OPTIONS: Final[Mapping[str, Words]] = {
    "alert_percent": Words("alert-percent", "Raise an alert when this share of it is spent."),
    "alert_subscription_id": Words("subscription", "The subscription, by name or ID."),
    "allowed_models": _MODEL,
    "amount": Words("amount", "In US dollars, such as 12.5."),
    "api_key_id": _KEY,
    "api_key_ids": Words("key", "Only this key, by name or ID. Can be given several times."),
    "bucket_width": Words("per", "The width of a row: a UTC hour or day."),
    "cap_percents": Words("cap-percent", "Share of a cap. Can be given several times."),
    "concurrent_requests": Words("concurrent", "Concurrent requests."),
    "credit_below": Words("credit-below", "Credit that is left, in US dollars."),
    "credit_percents": Words("credit-percent", "Share of the credit. Can be given several times."),
    "description": Words("description", "For your colleagues."),
    "dimension": Words("dimension", "user, safety_identifier or metadata.KEY."),
    "dimensions": Words("dimension", "user, safety_identifier or metadata.KEY."),
    "direction": Words("direction", "What is judged."),
    "emails": Words("email", "Send e-mail to this address. Can be given several times."),
    "end_time": Words("to", "End, in UTC: a date or a time. When left out, now."),
    "ends_answer_early": Words(
        "end-early", "Whether a match in the beginning of an answer ends the answer."
    ),
    "error_code": Words("error-code", "Only requests with this error code."),
    "expires_at": Words(
        "expires", "When it ends: a date such as 2027-01-31, or 30d. When left out, never."
    ),
    "group_by": Words("by", "Group by this field. Can be given several times."),
    "limit": Words("limit", "In US dollars, such as 12.5."),
    "match_threshold_basis_points": _THRESHOLD,
    "mode": Words("mode", "What a match does."),
    "model": Words("model", "Only requests for this model."),
    "name": Words("name", "The new name."),
    "operation": Words("operation", "Only requests of this operation."),
    "order": Words("order", "Oldest or newest first."),
    "organization_id": Words("organization", "The organization, by name or ID."),
    "outcome": Words("outcome", "Only requests that ended so."),
    "overlap_seconds": Words("overlap-seconds", "How long the old value works on."),
    "period": Words("period", "A UTC day, week (from Monday) or month, or all time."),
    "permissions": Words("permission", "Can be given several times. When left out, all."),
    "policy_id": Words("policy", "The policy, by name or ID."),
    "policy_matches_per_hour": Words("policy-matches-per-hour", "Matches of one policy."),
    "project_id": _PROJECT,
    "project_ids": Words(
        "project", "Only this project, by name or ID. Can be given several times."
    ),
    "refuses_until_judged": Words(
        "refuse-until-judged",
        "Also if the judge cannot answer: every request is then refused until it can.",
    ),
    "request_id": Words("id", "The X-Request-ID of the answer."),
    "requests_per_minute": Words("requests", "Requests per minute."),
    "retention_days": Words("retention-days", "Days after which values are deleted."),
    "revision": Words(
        "revision", "Refuse if the policy has another revision. When left out, the latest."
    ),
    "rule": Words("rule", "A yes-or-no question that ends with a question mark, or @FILE."),
    "scope": Words("scope", "Which requests it applies to."),
    "spending_limit.alert_percent": Words(
        "cap-alert-percent", "Raise an alert when this share of the cap is spent."
    ),
    "spending_limit.limit": Words("cap", "The most that the key may spend, in US dollars."),
    "spending_limit.period": Words(
        "cap-period", "What --cap counts: a UTC day, week (from Monday) or month, or all time."
    ),
    "start_time": Words("from", "Start, in UTC: a date, a time, or 30d for 30 days ago."),
    "status": Words("status", "A status such as 503, or a class such as 5xx."),
    "text": Words("text", "The text to judge, @FILE, or @- for standard input."),
    "tokens_per_minute": Words("tokens", "Tokens per minute, of prompts and answers."),
    "unsettled_requests": Words("unsettled-requests", "Requests without a final cost."),
    "url": Words("url", "Send signed webhooks to this URL."),
    "value": Words("value", "What callers sent in the field."),
    "version": Words("version", "The number of a published version."),
}
"""The option for each field of a body, query or path, without dashes."""
