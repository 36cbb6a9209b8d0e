"""The permission matrix, written by hand from the specification and the design.

Nothing here is read from the product: that is what makes it a check.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["customer", "admin"]


@dataclass(frozen=True)
class Row:
    """One operation: which kind of key may call it, and what that key must hold.

    `needs_model`: an empty body is all that these tests send there, and it is refused.
    """

    id: str
    method: str
    path: str
    kind: Kind
    permission: str
    needs_model: bool = False
    survives_archive: bool = False


_PROJECTS = "/manage/v1/organization/projects"
_PROJECT = f"{_PROJECTS}/{{project_id}}"
_KEYS = f"{_PROJECT}/api_keys"
_KEY = f"{_KEYS}/{{api_key_id}}"
_CREDITS = "/manage/v1/organization/credits"
_LIMITS = "/manage/v1/organization/spending_limits"
_RATE_LIMITS = "/manage/v1/organization/rate_limits"
_ALERTS = "/manage/v1/organization/alert_subscriptions"
_ALERT = f"{_ALERTS}/{{alert_subscription_id}}"
_REQUESTS = "/manage/v1/organization/requests"
_POLICY = "/v1/organization/policies/{policy_id}"
_MANAGED_POLICIES = "/manage/v1/organization/policies"
_MANAGED_POLICY = f"{_MANAGED_POLICIES}/{{policy_id}}"
_POLICY_RULES = "/manage/v1/organization/policy_rules"

ROWS = (
    Row(
        "createChatCompletion",
        "POST",
        "/v1/chat/completions",
        "customer",
        "inference:write",
        needs_model=True,
    ),
    Row("createResponse", "POST", "/v1/responses", "customer", "inference:write", needs_model=True),
    Row(
        "countTokens",
        "POST",
        "/v1/messages/count_tokens",
        "customer",
        "inference:write",
        needs_model=True,
    ),
    Row(
        *("createMessage", "POST", "/compat/anthropic/v1/messages", "customer", "inference:write"),
        needs_model=True,
    ),
    Row(
        "countMessageTokens",
        "POST",
        "/compat/anthropic/v1/messages/count_tokens",
        "customer",
        "inference:write",
        needs_model=True,
    ),
    Row(
        *("listMessagesModels", "GET", "/compat/anthropic/v1/models", "customer", "models:read"),
        survives_archive=True,
    ),
    Row(
        *("retrieveMessagesModel", "GET", "/compat/anthropic/v1/models/{model}"),
        *("customer", "models:read"),
        survives_archive=True,
    ),
    Row(
        *("retrieveModel", "GET", "/v1/models/{model}", "customer", "models:read"),
        survives_archive=True,
    ),
    Row(
        *("listModels", "GET", "/v1/models", "customer", "models:read"),
        survives_archive=True,
    ),
    Row(
        *("createPolicy", "POST", "/v1/organization/policies", "admin", "policies:write"),
    ),
    Row("retrievePolicy", "GET", _POLICY, "admin", "policies:read"),
    Row("editPolicy", "PATCH", _POLICY, "admin", "policies:write"),
    Row("pausePolicy", "POST", f"{_POLICY}/pause", "admin", "policies:write"),
    Row(
        "listEffectivePolicies",
        "GET",
        "/v1/organization/projects/{project_id}/effective_policies",
        "admin",
        "policies:read",
    ),
    Row(
        "createProjectKey",
        "POST",
        "/v1/organization/projects/{project_id}/api_keys",
        "admin",
        "project_api_keys:create",
    ),
    Row(
        "archiveProject",
        "POST",
        "/v1/organization/projects/{project_id}/archive",
        "admin",
        "projects:create",
    ),
    Row(
        "listAdminKeys",
        "GET",
        "/v1/organization/admin_api_keys",
        "admin",
        "admin_api_keys:read",
    ),
    Row(
        "revokeAdminKey",
        "DELETE",
        "/v1/organization/admin_api_keys/{api_key_id}",
        "admin",
        "admin_api_keys:revoke",
    ),
    Row(
        *("reportCosts", "GET", "/v1/organization/costs", "admin", "billing:read"),
    ),
    Row("retrieveOrganization", "GET", "/manage/v1/organization", "admin", "projects:read"),
    Row(
        "listOrganizationModels",
        "GET",
        "/manage/v1/organization/models",
        "admin",
        "projects:read",
    ),
    Row("listProjects", "GET", _PROJECTS, "admin", "projects:read"),
    Row("createProject", "POST", _PROJECTS, "admin", "projects:create"),
    Row("retrieveProject", "GET", _PROJECT, "admin", "projects:read"),
    Row("editProject", "PATCH", _PROJECT, "admin", "projects:create"),
    Row("listProjectKeys", "GET", _KEYS, "admin", "project_api_keys:read"),
    Row("retrieveProjectKey", "GET", _KEY, "admin", "project_api_keys:read"),
    Row(
        *("createManagedProjectKey", "POST", _KEYS, "admin", "project_api_keys:create"),
    ),
    Row(
        *("rotateProjectKey", "POST", f"{_KEY}/rotate", "admin", "project_api_keys:create"),
    ),
    Row(
        *("endPreviousProjectKeyValue", "POST", f"{_KEY}/end_previous"),
        *("admin", "project_api_keys:revoke"),
    ),
    Row(
        *("suspendProjectKey", "POST", f"{_KEY}/suspend", "admin", "project_api_keys:revoke"),
    ),
    Row(
        *("resumeProjectKey", "POST", f"{_KEY}/resume", "admin", "project_api_keys:revoke"),
    ),
    Row(
        *("revokeProjectKey", "POST", f"{_KEY}/revoke", "admin", "project_api_keys:revoke"),
    ),
    Row(
        "createAdminKey",
        "POST",
        "/manage/v1/organization/admin_api_keys",
        "admin",
        "admin_api_keys:create",
    ),
    Row(
        "retrieveAdminKey",
        "GET",
        "/manage/v1/organization/admin_api_keys/{api_key_id}",
        "admin",
        "admin_api_keys:read",
    ),
    Row(
        "narrowAdminKey",
        "POST",
        "/manage/v1/organization/admin_api_keys/{api_key_id}/narrow",
        "admin",
        "admin_api_keys:revoke",
    ),
    Row("listAudit", "GET", "/manage/v1/organization/audit", "admin", "audit:read"),
    Row("listPolicies", "GET", _MANAGED_POLICIES, "admin", "policies:read"),
    Row(
        *("listPolicyVersions", "GET", f"{_MANAGED_POLICY}/versions", "admin", "policies:read"),
    ),
    Row(
        "retrievePolicyVersion",
        "GET",
        f"{_MANAGED_POLICY}/versions/{{version}}",
        "admin",
        "policies:read",
    ),
    Row(
        *("publishPolicy", "POST", f"{_MANAGED_POLICY}/publish", "admin", "policies:write"),
    ),
    Row(
        *("resumePolicy", "POST", f"{_MANAGED_POLICY}/resume", "admin", "policies:write"),
    ),
    Row(
        *("rollBackPolicy", "POST", f"{_MANAGED_POLICY}/rollback", "admin", "policies:write"),
    ),
    Row("retrieveManagedPolicy", "GET", _MANAGED_POLICY, "admin", "policies:read"),
    Row("editManagedPolicy", "PATCH", _MANAGED_POLICY, "admin", "policies:write"),
    Row("deletePolicy", "DELETE", _MANAGED_POLICY, "admin", "policies:write"),
    Row("lintPolicy", "POST", f"{_MANAGED_POLICY}/lint", "admin", "policies:write"),
    Row("testPolicy", "POST", f"{_MANAGED_POLICY}/test", "admin", "policies:write"),
    Row("lintUnsavedRule", "POST", f"{_POLICY_RULES}/lint", "admin", "policies:write"),
    Row("testUnsavedRule", "POST", f"{_POLICY_RULES}/test", "admin", "policies:write"),
    Row("retrieveCredits", "GET", _CREDITS, "admin", "billing:read"),
    Row("listCreditEntries", "GET", f"{_CREDITS}/entries", "admin", "billing:read"),
    Row(
        *("createTestPayment", "POST", f"{_CREDITS}/test_payments", "admin", "billing:write"),
    ),
    Row("listSpendingLimits", "GET", _LIMITS, "admin", "spending_limits:read"),
    Row("setSpendingLimit", "PUT", _LIMITS, "admin", "spending_limits:write"),
    Row("clearSpendingLimit", "DELETE", _LIMITS, "admin", "spending_limits:write"),
    Row("listRateLimits", "GET", _RATE_LIMITS, "admin", "rate_limits:read"),
    Row("setRateLimit", "PUT", _RATE_LIMITS, "admin", "rate_limits:write"),
    Row("clearRateLimit", "DELETE", _RATE_LIMITS, "admin", "rate_limits:write"),
    Row(
        *("reportUsage", "GET", "/manage/v1/organization/usage", "admin", "billing:read"),
    ),
    Row(
        *("reportCompletions", "GET", "/manage/v1/organization/usage/completions"),
        *("admin", "billing:read"),
    ),
    Row(
        *("exportCosts", "GET", "/manage/v1/organization/costs/focus", "admin", "billing:read"),
    ),
    Row("listAlertSubscriptions", "GET", _ALERTS, "admin", "alerts:read"),
    Row("createAlertSubscription", "POST", _ALERTS, "admin", "alerts:write"),
    Row("retrieveAlertSubscription", "GET", _ALERT, "admin", "alerts:read"),
    Row("editAlertSubscription", "PUT", _ALERT, "admin", "alerts:write"),
    Row("deleteAlertSubscription", "DELETE", _ALERT, "admin", "alerts:write"),
    Row("rotateAlertSecret", "POST", f"{_ALERT}/rotate_secret", "admin", "alerts:write"),
    Row("testAlertSubscription", "POST", f"{_ALERT}/test", "admin", "alerts:write"),
    Row("retryAlertDeliveries", "POST", f"{_ALERT}/retry", "admin", "alerts:write"),
    Row(
        "listAlertDeliveries",
        "GET",
        "/manage/v1/organization/alert_deliveries",
        "admin",
        "alerts:read",
    ),
    Row(
        *("listPolicyDecisions", "GET", f"{_MANAGED_POLICY}/decisions", "admin", "policies:read"),
    ),
    Row(
        *("reportPolicy", "GET", f"{_MANAGED_POLICY}/rollups", "admin", "policies:read"),
    ),
    Row("listRequests", "GET", _REQUESTS, "admin", "activity:read"),
    Row(
        *("retrieveRequest", "GET", f"{_REQUESTS}/{{request_id}}", "admin", "activity:read"),
    ),
    Row(
        "reportRequests",
        "GET",
        "/manage/v1/organization/request_rollups",
        "admin",
        "activity:read",
    ),
)

ASKING = {"lintPolicy", "testPolicy", "lintUnsavedRule", "testUnsavedRule"}
"""Operations that take a body and change nothing."""

ADMIN_PERMISSIONS = (
    "policies:read",
    "policies:write",
    "project_api_keys:create",
    "projects:create",
    "billing:read",
    "admin_api_keys:read",
    "admin_api_keys:revoke",
    "projects:read",
    "project_api_keys:read",
    "project_api_keys:revoke",
    "admin_api_keys:create",
    "billing:write",
    "spending_limits:read",
    "spending_limits:write",
    "rate_limits:read",
    "rate_limits:write",
    "activity:read",
    "audit:read",
    "alerts:read",
    "alerts:write",
)
CUSTOMER_PERMISSIONS = ("inference:write", "models:read")

ALERT: dict[str, object] = {
    "name": "an alert",
    "url": "https://alerts.example.com/",
    "cap_percents": [80],
}
BODIES: dict[str, dict[str, object]] = {
    "createProjectKey": {"name": "a key"},
    "createProject": {"name": "a project"},
    "editProject": {"name": "another name"},
    "createManagedProjectKey": {"name": "a key"},
    "rotateProjectKey": {"overlap_seconds": 60},
    "createAdminKey": {"name": "a key", "permissions": ["admin_api_keys:create"]},
    "narrowAdminKey": {"permissions": ["projects:read"]},
    "createPolicy": {"name": "a policy", "rule": "Is it so?"},
    "editPolicy": {"revision": 1, "name": "another name"},
    "publishPolicy": {"revision": 1, "refuses_until_judged": True},
    "pausePolicy": {"revision": 2},
    "resumePolicy": {"revision": 3, "refuses_until_judged": True},
    "rollBackPolicy": {"revision": 3, "version": 1, "refuses_until_judged": True},
    "editManagedPolicy": {"revision": 1, "ends_answer_early": True},
    "lintPolicy": {},
    "testPolicy": {"text": "Some text."},
    "lintUnsavedRule": {"rule": "Is it so?"},
    "testUnsavedRule": {"rule": "Is it so?", "text": "Some text."},
    "createTestPayment": {"amount": {"value": "12.5"}},
    "setSpendingLimit": {"period": "month", "limit": {"value": "100"}},
    "setRateLimit": {"requests_per_minute": 600},
    "createAlertSubscription": ALERT,
    "editAlertSubscription": ALERT,
    "rotateAlertSecret": {"overlap_seconds": 0},
}
"""A sound body for every operation that is built and takes one."""

QUERIES: dict[str, dict[str, str]] = {
    "clearSpendingLimit": {"period": "month"},
    "reportCosts": {"start_time": "0"},
    "reportUsage": {"start_time": "0"},
    "reportCompletions": {"start_time": "0"},
    "exportCosts": {"start_time": "0", "end_time": "1"},
    "reportRequests": {"start_time": "0", "end_time": "1"},
    "reportPolicy": {"start_time": "0", "end_time": "1"},
}
"""A sound query for every operation that is built and demands one."""
