"""The `code` values of failures by status (OQ-02).

`tests/contract/test_codes.py` fails if an error class has a code that is missing here.
"""

from typing import get_args

from tollhouse.base.errors import InvalidCode

CODES: dict[int, tuple[str, ...]] = {
    400: (
        *get_args(InvalidCode),
        "context_length_exceeded",
        "malformed_request",
        "policy_budget_exceeded",
    ),
    401: (
        "invalid_api_key",
        "missing_api_key",
        "session_ended",
        "wrong_cell",
    ),
    402: (
        "api_key_spend_limit_exceeded",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "reservation_too_large",
    ),
    403: (
        "expiry_exceeds_creator",
        "foreign_page",
        "insufficient_permissions",
        "key_suspended",
        "model_locked",
        "organization_suspended",
        "policy_not_evaluable",
        "policy_violation",
        "project_archived",
        "test_payments_refused",
        "wrong_key_type",
    ),
    404: (
        "alert_subscription_not_found",
        "api_key_not_found",
        "credit_entry_not_found",
        "model_not_found",
        "policy_not_found",
        "policy_version_not_found",
        "project_not_found",
        "rate_limit_not_found",
        "request_not_found",
        "spending_limit_not_found",
        "unknown_url",
    ),
    405: ("method_not_allowed",),
    408: ("request_timeout",),
    409: (
        "alert_subscription_unsigned",
        "api_key_state_conflict",
        "idempotency_key_in_progress",
        "idempotency_key_reused",
        "policy_budget_exceeded",
        "policy_not_judged",
        "policy_state_conflict",
        "project_archived",
        "quota_exceeded",
        "revision_conflict",
    ),
    413: ("request_too_large",),
    415: ("unsupported_media_type",),
    422: ("provider_validation_failed",),
    429: (
        "concurrency_limit_exceeded",
        "policy_rate_limit_exceeded",
        "rate_limit_exceeded",
        "too_many_bodies",
        "too_many_policy_tests",
    ),
    431: ("request_headers_too_large",),
    500: ("server_error",),
    501: ("unsupported_parameter",),
    502: ("backend_error",),
    503: (
        "body_quota_exceeded",
        "no_judge",
        "organization_moved",
        "organization_moving",
        "output_buffer_exceeded",
        "policy_answer_too_long",
        "policy_buffer_exceeded",
        "policy_evaluator_unavailable",
        "server_is_overloaded",
        "service_unavailable",
    ),
    504: ("deadline_exceeded",),
}
"""The codes of HTTP responses."""

COMMAND_CODES: dict[int, tuple[str, ...]] = {
    404: (
        "organization_not_found",
        "reservation_not_found",
    ),
    409: (
        "day_closed",
        "organization_closed",
        "too_many_checks",
    ),
}
"""The codes that only the `tollhouse` command reports."""
