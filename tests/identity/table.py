"""The permission matrix, written by hand from the specification and the design.

Nothing here is read from the product: that is what makes it a check.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["customer", "admin"]


@dataclass(frozen=True)
class Row:
    """One operation: which kind of key may call it, and what that key must hold."""

    id: str
    method: str
    path: str
    kind: Kind
    permission: str
    is_built: bool = False
    survives_archive: bool = False


_PROJECTS = "/manage/v1/organization/projects"
_PROJECT = f"{_PROJECTS}/{{project_id}}"
_KEYS = f"{_PROJECT}/api_keys"
_KEY = f"{_KEYS}/{{api_key_id}}"
_POLICY = "/v1/organization/policies/{policy_id}"

ROWS = (
    Row("createChatCompletion", "POST", "/v1/chat/completions", "customer", "inference:write"),
    Row("createResponse", "POST", "/v1/responses", "customer", "inference:write"),
    Row("countTokens", "POST", "/v1/messages/count_tokens", "customer", "inference:write"),
    Row(
        *("retrieveModel", "GET", "/v1/models/{model}", "customer", "models:read"),
        survives_archive=True,
    ),
    Row(*("listModels", "GET", "/v1/models", "customer", "models:read"), survives_archive=True),
    Row("createPolicy", "POST", "/v1/organization/policies", "admin", "policies:write"),
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
        is_built=True,
    ),
    Row(
        "archiveProject",
        "POST",
        "/v1/organization/projects/{project_id}/archive",
        "admin",
        "projects:create",
        is_built=True,
    ),
    Row(
        "listAdminKeys",
        "GET",
        "/v1/organization/admin_api_keys",
        "admin",
        "admin_api_keys:read",
        is_built=True,
    ),
    Row(
        "revokeAdminKey",
        "DELETE",
        "/v1/organization/admin_api_keys/{api_key_id}",
        "admin",
        "admin_api_keys:revoke",
        is_built=True,
    ),
    Row(
        *("reportCosts", "GET", "/v1/organization/costs", "admin", "billing:read"),
        is_built=True,
    ),
    Row("listProjects", "GET", _PROJECTS, "admin", "projects:read", is_built=True),
    Row("createProject", "POST", _PROJECTS, "admin", "projects:create", is_built=True),
    Row("retrieveProject", "GET", _PROJECT, "admin", "projects:read", is_built=True),
    Row("renameProject", "PATCH", _PROJECT, "admin", "projects:create", is_built=True),
    Row("listProjectKeys", "GET", _KEYS, "admin", "project_api_keys:read", is_built=True),
    Row("retrieveProjectKey", "GET", _KEY, "admin", "project_api_keys:read", is_built=True),
    Row(
        *("createManagedProjectKey", "POST", _KEYS, "admin", "project_api_keys:create"),
        is_built=True,
    ),
    Row(
        *("rotateProjectKey", "POST", f"{_KEY}/rotate", "admin", "project_api_keys:create"),
        is_built=True,
    ),
    Row(
        *("suspendProjectKey", "POST", f"{_KEY}/suspend", "admin", "project_api_keys:revoke"),
        is_built=True,
    ),
    Row(
        *("resumeProjectKey", "POST", f"{_KEY}/resume", "admin", "project_api_keys:revoke"),
        is_built=True,
    ),
    Row(
        *("revokeProjectKey", "POST", f"{_KEY}/revoke", "admin", "project_api_keys:revoke"),
        is_built=True,
    ),
    Row(
        "createAdminKey",
        "POST",
        "/manage/v1/organization/admin_api_keys",
        "admin",
        "admin_api_keys:create",
        is_built=True,
    ),
    Row("listAudit", "GET", "/manage/v1/organization/audit", "admin", "audit:read", is_built=True),
    Row(
        *("reportUsage", "GET", "/manage/v1/organization/usage", "admin", "billing:read"),
        is_built=True,
    ),
)

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
)
CUSTOMER_PERMISSIONS = ("inference:write", "models:read")

BODIES: dict[str, dict[str, object]] = {
    "createProjectKey": {"name": "a key"},
    "createProject": {"name": "a project"},
    "renameProject": {"name": "another name"},
    "createManagedProjectKey": {"name": "a key"},
    "rotateProjectKey": {"overlap_seconds": 0},
    "createAdminKey": {"name": "a key", "permissions": ["admin_api_keys:create"]},
}
"""A sound body for every operation that is built and takes one."""

QUERIES = {"reportCosts": "?start_time=0", "reportUsage": "?start_time=0"}
"""A sound query for every operation that is built and demands one."""
