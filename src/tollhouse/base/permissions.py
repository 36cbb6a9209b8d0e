"""The permissions of keys."""

from enum import StrEnum


class Permission(StrEnum):
    """What a route requires and a key has.

    The specification names the first nine; the others belong to the management extension.
    """

    INFERENCE_WRITE = "inference:write"
    MODELS_READ = "models:read"
    POLICIES_READ = "policies:read"
    POLICIES_WRITE = "policies:write"
    PROJECT_API_KEYS_CREATE = "project_api_keys:create"
    PROJECTS_CREATE = "projects:create"
    BILLING_READ = "billing:read"
    ADMIN_API_KEYS_READ = "admin_api_keys:read"
    ADMIN_API_KEYS_REVOKE = "admin_api_keys:revoke"

    PROJECTS_READ = "projects:read"
    PROJECT_API_KEYS_READ = "project_api_keys:read"
    PROJECT_API_KEYS_REVOKE = "project_api_keys:revoke"
    ADMIN_API_KEYS_CREATE = "admin_api_keys:create"
    BILLING_WRITE = "billing:write"
    SPENDING_LIMITS_READ = "spending_limits:read"
    SPENDING_LIMITS_WRITE = "spending_limits:write"
    RATE_LIMITS_READ = "rate_limits:read"
    RATE_LIMITS_WRITE = "rate_limits:write"
    ACTIVITY_READ = "activity:read"
    AUDIT_READ = "audit:read"
    ALERTS_READ = "alerts:read"
    ALERTS_WRITE = "alerts:write"


CUSTOMER_PERMISSIONS = frozenset({Permission.INFERENCE_WRITE, Permission.MODELS_READ})
ADMIN_PERMISSIONS = frozenset(Permission) - CUSTOMER_PERMISSIONS

CHECK_NAME_PATTERN = r"\A[a-z0-9][a-z0-9._-]{0,99}\Z"
"""The name of what an organization was found to fulfil, and a model can require."""
