"""The management extension under `/manage/v1`: what the specification does not show."""

from tollhouse.base.permissions import Permission
from tollhouse.contract import audit, keys, listing, projects, spending_limits, usage
from tollhouse.contract import credits as credits_wire
from tollhouse.contract.operation import Access, Credential, Operation
from tollhouse.contract.origins import Origin
from tollhouse.contract.statuses import READING, WRITING

_PROJECTS = "/manage/v1/organization/projects"
_PROJECT = f"{_PROJECTS}/{{project_id}}"
_PROJECT_KEYS = f"{_PROJECT}/api_keys"
_PROJECT_KEY = f"{_PROJECT_KEYS}/{{api_key_id}}"
_CREDITS = "/manage/v1/organization/credits"
_SPENDING_LIMITS = "/manage/v1/organization/spending_limits"


def _admin(permission: Permission) -> Access:
    return Access(credential=Credential.ADMIN, permission=permission)


LIST_PROJECTS = Operation(
    id="listProjects",
    method="GET",
    path=_PROJECTS,
    tag="Projects",
    summary="List the projects",
    access=_admin(Permission.PROJECTS_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-117",),
    query=listing.ListQuery,
    result=projects.ProjectList,
    statuses=READING,
)
CREATE_PROJECT = Operation(
    id="createProject",
    method="POST",
    path=_PROJECTS,
    tag="Projects",
    summary="Create a project",
    access=_admin(Permission.PROJECTS_CREATE),
    origin=Origin.EXTENSION,
    questions=("OQ-117",),
    body=projects.CreateProject,
    result=projects.Project,
    creates_idempotently=True,
    statuses=WRITING,
)
RETRIEVE_PROJECT = Operation(
    id="retrieveProject",
    method="GET",
    path=_PROJECT,
    tag="Projects",
    summary="Read a project",
    access=_admin(Permission.PROJECTS_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-117",),
    result=projects.Project,
    statuses=READING,
)
EDIT_PROJECT = Operation(
    id="editProject",
    method="PATCH",
    path=_PROJECT,
    tag="Projects",
    summary="Change a project",
    access=_admin(Permission.PROJECTS_CREATE),
    origin=Origin.EXTENSION,
    questions=("OQ-86", "OQ-117"),
    body=projects.EditProject,
    result=projects.Project,
    statuses=WRITING,
)
LIST_PROJECT_KEYS = Operation(
    id="listProjectKeys",
    method="GET",
    path=_PROJECT_KEYS,
    tag="Project keys",
    summary="List a project's keys",
    access=_admin(Permission.PROJECT_API_KEYS_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-87", "OQ-154"),
    query=listing.ListQuery,
    result=keys.ProjectKeyList,
    statuses=READING,
)
RETRIEVE_PROJECT_KEY = Operation(
    id="retrieveProjectKey",
    method="GET",
    path=_PROJECT_KEY,
    tag="Project keys",
    summary="Read a project key",
    access=_admin(Permission.PROJECT_API_KEYS_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-87", "OQ-154"),
    result=keys.ManagedProjectKey,
    statuses=READING,
)
CREATE_MANAGED_PROJECT_KEY = Operation(
    id="createManagedProjectKey",
    method="POST",
    path=_PROJECT_KEYS,
    tag="Project keys",
    summary="Create a project key that expires, or may do less",
    access=_admin(Permission.PROJECT_API_KEYS_CREATE),
    origin=Origin.EXTENSION,
    questions=("OQ-86", "OQ-151"),
    body=keys.CreateManagedProjectKey,
    result=keys.ManagedProjectKey,
    creates_idempotently=True,
    statuses=WRITING,
)
ROTATE_PROJECT_KEY = Operation(
    id="rotateProjectKey",
    method="POST",
    path=f"{_PROJECT_KEY}/rotate",
    tag="Project keys",
    summary="Give a project key a new secret",
    access=_admin(Permission.PROJECT_API_KEYS_CREATE),
    origin=Origin.EXTENSION,
    questions=("OQ-150",),
    body=keys.RotateProjectKey,
    result=keys.ManagedProjectKey,
    creates_idempotently=True,
    statuses=WRITING,
)
SUSPEND_PROJECT_KEY = Operation(
    id="suspendProjectKey",
    method="POST",
    path=f"{_PROJECT_KEY}/suspend",
    tag="Project keys",
    summary="Suspend a project key",
    access=_admin(Permission.PROJECT_API_KEYS_REVOKE),
    origin=Origin.EXTENSION,
    questions=("OQ-87",),
    result=keys.ManagedProjectKey,
    statuses=WRITING,
)
RESUME_PROJECT_KEY = Operation(
    id="resumeProjectKey",
    method="POST",
    path=f"{_PROJECT_KEY}/resume",
    tag="Project keys",
    summary="End the suspension of a project key",
    access=_admin(Permission.PROJECT_API_KEYS_REVOKE),
    origin=Origin.EXTENSION,
    questions=("OQ-87",),
    result=keys.ManagedProjectKey,
    statuses=WRITING,
)
REVOKE_PROJECT_KEY = Operation(
    id="revokeProjectKey",
    method="POST",
    path=f"{_PROJECT_KEY}/revoke",
    tag="Project keys",
    summary="Revoke a project key for good",
    access=_admin(Permission.PROJECT_API_KEYS_REVOKE),
    origin=Origin.EXTENSION,
    questions=("OQ-87",),
    result=keys.ManagedProjectKey,
    statuses=WRITING,
)
CREATE_ADMIN_KEY = Operation(
    id="createAdminKey",
    method="POST",
    path="/manage/v1/organization/admin_api_keys",
    tag="Admin keys",
    summary="Create an Admin key",
    access=_admin(Permission.ADMIN_API_KEYS_CREATE),
    origin=Origin.EXTENSION,
    questions=("OQ-148",),
    body=keys.CreateAdminKey,
    result=keys.CreatedAdminKey,
    creates_idempotently=True,
    statuses=WRITING,
)
LIST_AUDIT = Operation(
    id="listAudit",
    method="GET",
    path="/manage/v1/organization/audit",
    tag="Organization",
    summary="List who changed what",
    access=_admin(Permission.AUDIT_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-158",),
    query=listing.ListQuery,
    result=audit.AuditList,
    statuses=READING,
)
RETRIEVE_CREDITS = Operation(
    id="retrieveCredits",
    method="GET",
    path=_CREDITS,
    tag="Credits",
    summary="Read the balance",
    access=_admin(Permission.BILLING_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-138", "OQ-167"),
    result=credits_wire.Credits,
    statuses=READING,
)
LIST_CREDIT_ENTRIES = Operation(
    id="listCreditEntries",
    method="GET",
    path=f"{_CREDITS}/entries",
    tag="Credits",
    summary="List what the credit is made of",
    access=_admin(Permission.BILLING_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-138", "OQ-168"),
    query=listing.ListQuery,
    result=credits_wire.CreditEntryList,
    statuses=READING,
)
CREATE_TEST_PAYMENT = Operation(
    id="createTestPayment",
    method="POST",
    path=f"{_CREDITS}/test_payments",
    tag="Credits",
    summary="Get credit in a sandbox without paying",
    access=_admin(Permission.BILLING_WRITE),
    origin=Origin.EXTENSION,
    questions=("OQ-169",),
    body=credits_wire.CreateTestPayment,
    result=credits_wire.CreditEntry,
    creates_idempotently=True,
    statuses=WRITING,
)
LIST_SPENDING_LIMITS = Operation(
    id="listSpendingLimits",
    method="GET",
    path=_SPENDING_LIMITS,
    tag="Spending limits",
    summary="List the spending limits with their use",
    access=_admin(Permission.SPENDING_LIMITS_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-138", "OQ-170"),
    query=listing.ListQuery,
    result=spending_limits.SpendingLimitList,
    statuses=READING,
)
SET_SPENDING_LIMIT = Operation(
    id="setSpendingLimit",
    method="PUT",
    path=_SPENDING_LIMITS,
    tag="Spending limits",
    summary="Set or change a spending limit",
    access=_admin(Permission.SPENDING_LIMITS_WRITE),
    origin=Origin.EXTENSION,
    questions=("OQ-138", "OQ-170"),
    body=spending_limits.SetSpendingLimit,
    result=spending_limits.SpendingLimit,
    statuses=WRITING,
)
CLEAR_SPENDING_LIMIT = Operation(
    id="clearSpendingLimit",
    method="DELETE",
    path=_SPENDING_LIMITS,
    tag="Spending limits",
    summary="Remove a spending limit",
    access=_admin(Permission.SPENDING_LIMITS_WRITE),
    origin=Origin.EXTENSION,
    questions=("OQ-138", "OQ-170"),
    query=spending_limits.ClearSpendingLimitQuery,
    result=spending_limits.SpendingLimitDeleted,
    statuses=WRITING,
)
REPORT_USAGE = Operation(
    id="reportUsage",
    method="GET",
    path="/manage/v1/organization/usage",
    tag="Reports",
    summary="Report tokens, images and requests in hourly or daily buckets",
    access=_admin(Permission.BILLING_READ),
    origin=Origin.EXTENSION,
    questions=("OQ-138", "OQ-171"),
    query=usage.UsageQuery,
    result=usage.UsagePage,
    statuses=READING,
)
