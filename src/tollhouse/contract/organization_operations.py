"""The operations of the management extension on the organization, its Admin keys and its log."""

from tollhouse.base.permissions import Permission
from tollhouse.contract import audit, keys, listing, models, organizations
from tollhouse.contract.command import Command, Words
from tollhouse.contract.operation import declare

_ORGANIZATION = "/manage/v1/organization"
_ADMIN_KEYS = f"{_ORGANIZATION}/admin_api_keys"


RETRIEVE_ORGANIZATION = declare(
    "retrieveOrganization",
    f"GET {_ORGANIZATION}",
    "Read the organization, and which judge the gateway has",
    "OQ-206",
    tag="Organization",
    permission=Permission.PROJECTS_READ,
    result=organizations.Organization,
    command=Command(
        "whoami",
        "Show the organization that the command works on, and which judge the gateway has.",
        example="--json",
    ),
)
"""Of the Admin key that asks."""
LIST_ORGANIZATION_MODELS = declare(
    "listOrganizationModels",
    f"GET {_ORGANIZATION}/models",
    "List the models of the gateway as the organization sees them",
    "OQ-207",
    tag="Organization",
    permission=Permission.PROJECTS_READ,
    result=models.ModelList,
    command=Command(
        "models list",
        (
            "List the models of the gateway as the organization sees them, with prices per "
            "million tokens."
        ),
        example="--json",
        columns=(
            "id is_ready access.available access.missing_requirements context_length "
            "pricing.prompt pricing.completion"
        ),
    ),
)
"""Locked ones included, whatever single projects or keys may use."""
CREATE_ADMIN_KEY = declare(
    "createAdminKey",
    f"POST {_ADMIN_KEYS}",
    "Create an Admin key",
    "OQ-148",
    tag="Admin keys",
    permission=Permission.ADMIN_API_KEYS_CREATE,
    body=keys.CreateAdminKey,
    result=keys.CreatedAdminKey,
    creates_idempotently=True,
    command=Command(
        "admin-key create",
        (
            "Create an Admin key.\n\nIts value is shown only here. A key with the permission "
            "admin_api_keys:revoke can revoke every other Admin key."
        ),
        example="finance --permission billing:read",
        arguments="name",
        is_creation=True,
    ),
)
"""A key can grant only permissions that it has, and none that lives longer than itself. The `value`
is in this answer alone, and for 24 hours in a repetition with the same `Idempotency-Key`."""
RETRIEVE_ADMIN_KEY = declare(
    "retrieveAdminKey",
    f"GET {_ADMIN_KEYS}/{{api_key_id}}",
    "Read an Admin key",
    "OQ-123",
    tag="Admin keys",
    permission=Permission.ADMIN_API_KEYS_READ,
    result=keys.AdminKey,
    command=Command(
        "admin-key show",
        "Show one Admin key, without its value.",
        example="KEY_ID",
        arguments="api_key_id",
        words={
            "api_key_id": Words("key", "The Admin key, by name or ID."),
        },
    ),
)
"""Without its value. A revoked one is not found."""
NARROW_ADMIN_KEY = declare(
    "narrowAdminKey",
    f"POST {_ADMIN_KEYS}/{{api_key_id}}/narrow",
    "Take permissions from an Admin key",
    "OQ-205",
    tag="Admin keys",
    permission=Permission.ADMIN_API_KEYS_REVOKE,
    body=keys.NarrowAdminKey,
    result=keys.AdminKey,
    command=Command(
        "admin-key narrow",
        "Take permissions from an Admin key, for good.",
        example="KEY_ID --permission billing:read",
        arguments="api_key_id",
        words={
            "api_key_id": Words("key", "The Admin key, by name or ID."),
            "permissions": Words(
                "permission", "A permission that the key keeps. Can be given several times."
            ),
        },
    ),
)
"""The key keeps the permissions that are sent. It must have them, and gets none back later."""
LIST_AUDIT = declare(
    "listAudit",
    f"GET {_ORGANIZATION}/audit",
    "List who changed what",
    "OQ-158",
    tag="Organization",
    permission=Permission.AUDIT_READ,
    query=listing.ListQuery,
    result=audit.AuditList,
    command=Command(
        "audit",
        "Show the latest changes, newest first. --json shows the changed values as well.",
        example="--limit 50",
        columns="occurred_at actor action resource changes.field",
        shown_max=20,
    ),
)
"""One entry for each change, by whom and from what to what, newest first."""
