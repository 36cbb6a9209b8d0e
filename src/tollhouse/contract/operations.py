"""The whole surface as data: every route, what it needs and what it answers, in one table.

Under `/v1` stands what the specification gives, and one adopted list; modules that begin with
`manage_` have the management extension.
"""

from tollhouse.base.permissions import Permission
from tollhouse.contract import (
    chat,
    completions,
    costs,
    keys,
    listing,
    messages,
    models,
    policies,
    projects,
    response_result,
    responses,
)
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.manage_limit_operations import (
    CLEAR_RATE_LIMIT,
    LIST_RATE_LIMITS,
    SET_RATE_LIMIT,
)
from tollhouse.contract.manage_operations import (
    CLEAR_SPENDING_LIMIT,
    CREATE_ADMIN_KEY,
    CREATE_MANAGED_PROJECT_KEY,
    CREATE_PROJECT,
    CREATE_TEST_PAYMENT,
    EDIT_PROJECT,
    LIST_AUDIT,
    LIST_CREDIT_ENTRIES,
    LIST_PROJECT_KEYS,
    LIST_PROJECTS,
    LIST_SPENDING_LIMITS,
    REPORT_USAGE,
    RESUME_PROJECT_KEY,
    RETRIEVE_CREDITS,
    RETRIEVE_PROJECT,
    RETRIEVE_PROJECT_KEY,
    REVOKE_PROJECT_KEY,
    ROTATE_PROJECT_KEY,
    SET_SPENDING_LIMIT,
    SUSPEND_PROJECT_KEY,
)
from tollhouse.contract.manage_policy_operations import (
    EDIT_MANAGED_POLICY,
    LINT_POLICY,
    LIST_POLICIES,
    LIST_POLICY_DECISIONS,
    LIST_POLICY_VERSIONS,
    PUBLISH_POLICY,
    REPORT_POLICY,
    RESUME_POLICY,
    RETRIEVE_MANAGED_POLICY,
    RETRIEVE_POLICY_VERSION,
    ROLL_BACK_POLICY,
    TEST_POLICY,
)
from tollhouse.contract.manage_request_operations import (
    LIST_REQUESTS,
    REPORT_REQUESTS,
    RETRIEVE_REQUEST,
)
from tollhouse.contract.operation import Access, Credential, Exemption, Guard, Operation
from tollhouse.contract.origins import Origin
from tollhouse.contract.statuses import CHAT, COUNTING, MODEL_READING, READING, WRITING

_INFERENCE = Access(credential=Credential.CUSTOMER, permission=Permission.INFERENCE_WRITE)
_MODELS = Access(
    credential=Credential.CUSTOMER, permission=Permission.MODELS_READ, survives_archive=True
)


def _admin(permission: Permission) -> Access:
    return Access(credential=Credential.ADMIN, permission=permission)


def _without_admission_and_policies(reason: str) -> tuple[Exemption, ...]:
    return (
        Exemption(guard=Guard.ADMISSION, reason=reason),
        Exemption(guard=Guard.POLICIES, reason=reason),
    )


CREATE_CHAT_COMPLETION = Operation(
    id="createChatCompletion",
    method="POST",
    path="/v1/chat/completions",
    tag="Inference",
    summary="Generate a chat completion",
    access=_INFERENCE,
    origin=Origin.GIVEN,
    body=chat.ChatRequest,
    result=completions.ChatCompletion,
    takes_session=True,
    streams=True,
    statuses=CHAT,
)
CREATE_RESPONSE = Operation(
    id="createResponse",
    method="POST",
    path="/v1/responses",
    tag="Inference",
    summary="Generate a stateless response",
    access=_INFERENCE,
    origin=Origin.GIVEN,
    body=responses.ResponseRequest,
    result=response_result.ResponseResult,
    takes_session=True,
    streams=True,
    statuses=CHAT,
)
COUNT_TOKENS = Operation(
    id="countTokens",
    method="POST",
    path="/v1/messages/count_tokens",
    tag="Inference",
    summary="Count the input tokens of a Messages-shaped input",
    access=_INFERENCE,
    origin=Origin.GIVEN,
    body=messages.CountTokens,
    result=messages.TokenCount,
    takes_session=True,
    error_shape=ErrorShape.MESSAGES,
    exemptions=_without_admission_and_policies("counting generates nothing"),
    statuses=COUNTING,
)
RETRIEVE_MODEL = Operation(
    id="retrieveModel",
    method="GET",
    path="/v1/models/{model}",
    tag="Models",
    summary="Read one model",
    access=_MODELS,
    origin=Origin.GIVEN,
    result=models.Model,
    tail_parameter=True,
    exemptions=_without_admission_and_policies("reading the catalog generates nothing"),
    statuses=MODEL_READING,
)
LIST_MODELS = Operation(
    id="listModels",
    method="GET",
    path="/v1/models",
    tag="Models",
    summary="List the models",
    access=_MODELS,
    origin=Origin.ADOPTED,
    questions=("OQ-76",),
    result=models.ModelList,
    exemptions=_without_admission_and_policies("reading the catalog generates nothing"),
    statuses=MODEL_READING,
)
CREATE_POLICY = Operation(
    id="createPolicy",
    method="POST",
    path="/v1/organization/policies",
    tag="Policies",
    summary="Create a policy draft",
    access=_admin(Permission.POLICIES_WRITE),
    origin=Origin.GIVEN,
    body=policies.CreatePolicy,
    result=policies.Policy,
    creates_idempotently=True,
    statuses=WRITING,
)
RETRIEVE_POLICY = Operation(
    id="retrievePolicy",
    method="GET",
    path="/v1/organization/policies/{policy_id}",
    tag="Policies",
    summary="Read a policy",
    access=_admin(Permission.POLICIES_READ),
    origin=Origin.GIVEN,
    result=policies.Policy,
    statuses=READING,
)
EDIT_POLICY = Operation(
    id="editPolicy",
    method="PATCH",
    path="/v1/organization/policies/{policy_id}",
    tag="Policies",
    summary="Edit a policy draft",
    access=_admin(Permission.POLICIES_WRITE),
    origin=Origin.GIVEN,
    body=policies.EditPolicy,
    result=policies.Policy,
    statuses=WRITING,
)
PAUSE_POLICY = Operation(
    id="pausePolicy",
    method="POST",
    path="/v1/organization/policies/{policy_id}/pause",
    tag="Policies",
    summary="Pause a published policy",
    access=_admin(Permission.POLICIES_WRITE),
    origin=Origin.GIVEN,
    body=policies.PausePolicy,
    result=policies.Policy,
    statuses=WRITING,
)
LIST_EFFECTIVE_POLICIES = Operation(
    id="listEffectivePolicies",
    method="GET",
    path="/v1/organization/projects/{project_id}/effective_policies",
    tag="Policies",
    summary="List the policies that apply to a project by themselves",
    access=_admin(Permission.POLICIES_READ),
    origin=Origin.GIVEN,
    result=policies.EffectivePolicyList,
    statuses=READING,
)
CREATE_PROJECT_KEY = Operation(
    id="createProjectKey",
    method="POST",
    path="/v1/organization/projects/{project_id}/api_keys",
    tag="Project keys",
    summary="Create a project key",
    access=_admin(Permission.PROJECT_API_KEYS_CREATE),
    origin=Origin.GIVEN,
    body=keys.CreateProjectKey,
    result=keys.ProjectKey,
    creates_idempotently=True,
    statuses=WRITING,
)
ARCHIVE_PROJECT = Operation(
    id="archiveProject",
    method="POST",
    path="/v1/organization/projects/{project_id}/archive",
    tag="Projects",
    summary="Archive a project",
    access=_admin(Permission.PROJECTS_CREATE),
    origin=Origin.GIVEN,
    result=projects.ProjectDeleted,
    statuses=WRITING,
)
LIST_ADMIN_KEYS = Operation(
    id="listAdminKeys",
    method="GET",
    path="/v1/organization/admin_api_keys",
    tag="Admin keys",
    summary="List the Admin keys",
    access=_admin(Permission.ADMIN_API_KEYS_READ),
    origin=Origin.GIVEN,
    query=listing.AdminKeysQuery,
    result=keys.AdminKeyList,
    statuses=READING,
)
REVOKE_ADMIN_KEY = Operation(
    id="revokeAdminKey",
    method="DELETE",
    path="/v1/organization/admin_api_keys/{api_key_id}",
    tag="Admin keys",
    summary="Revoke an Admin key",
    access=_admin(Permission.ADMIN_API_KEYS_REVOKE),
    origin=Origin.GIVEN,
    result=keys.AdminKeyDeleted,
    statuses=WRITING,
)
REPORT_COSTS = Operation(
    id="reportCosts",
    method="GET",
    path="/v1/organization/costs",
    tag="Reports",
    summary="Report the costs in daily buckets",
    access=_admin(Permission.BILLING_READ),
    origin=Origin.GIVEN,
    query=costs.CostsQuery,
    result=costs.CostPage,
    statuses=READING,
)

OPERATIONS: tuple[Operation, ...] = (
    CREATE_CHAT_COMPLETION,
    CREATE_RESPONSE,
    COUNT_TOKENS,
    RETRIEVE_MODEL,
    LIST_MODELS,
    CREATE_POLICY,
    RETRIEVE_POLICY,
    EDIT_POLICY,
    PAUSE_POLICY,
    LIST_EFFECTIVE_POLICIES,
    CREATE_PROJECT_KEY,
    ARCHIVE_PROJECT,
    LIST_ADMIN_KEYS,
    REVOKE_ADMIN_KEY,
    REPORT_COSTS,
    LIST_PROJECTS,
    CREATE_PROJECT,
    RETRIEVE_PROJECT,
    EDIT_PROJECT,
    LIST_PROJECT_KEYS,
    RETRIEVE_PROJECT_KEY,
    CREATE_MANAGED_PROJECT_KEY,
    ROTATE_PROJECT_KEY,
    SUSPEND_PROJECT_KEY,
    RESUME_PROJECT_KEY,
    REVOKE_PROJECT_KEY,
    CREATE_ADMIN_KEY,
    LIST_AUDIT,
    LIST_POLICIES,
    RETRIEVE_MANAGED_POLICY,
    EDIT_MANAGED_POLICY,
    LIST_POLICY_VERSIONS,
    RETRIEVE_POLICY_VERSION,
    PUBLISH_POLICY,
    RESUME_POLICY,
    ROLL_BACK_POLICY,
    LINT_POLICY,
    TEST_POLICY,
    LIST_POLICY_DECISIONS,
    REPORT_POLICY,
    RETRIEVE_CREDITS,
    LIST_CREDIT_ENTRIES,
    CREATE_TEST_PAYMENT,
    LIST_SPENDING_LIMITS,
    SET_SPENDING_LIMIT,
    CLEAR_SPENDING_LIMIT,
    LIST_RATE_LIMITS,
    SET_RATE_LIMIT,
    CLEAR_RATE_LIMIT,
    REPORT_USAGE,
    LIST_REQUESTS,
    RETRIEVE_REQUEST,
    REPORT_REQUESTS,
)
