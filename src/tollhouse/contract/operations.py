"""The operations under `/v1`, and the table of all operations.

Under `/v1` is what the specification gives, and one adopted list of models.
"""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import (
    alert_operations,
    chat,
    compat_operations,
    completions,
    costs,
    keys,
    listing,
    manage_operations,
    messages,
    models,
    organization_operations,
    policies,
    projects,
    response_result,
    responses,
)
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.operation import CHAT, COUNTING, declare, declared_in

_inference = partial(
    declare, tag="Inference", permission=Permission.INFERENCE_WRITE, takes_session=True
)
_models = partial(
    declare,
    tag="Models",
    permission=Permission.MODELS_READ,
    survives_archive=True,
    generates_nothing="reading the catalog generates nothing",
)
_policies_read = partial(declare, tag="Policies", permission=Permission.POLICIES_READ)
_policies_write = partial(declare, tag="Policies", permission=Permission.POLICIES_WRITE)

CREATE_CHAT_COMPLETION = _inference(
    "createChatCompletion",
    "POST /v1/chat/completions",
    "Generate a chat completion",
    body=chat.ChatRequest,
    result=completions.ChatCompletion,
    streams=True,
    statuses=CHAT,
)
CREATE_RESPONSE = _inference(
    "createResponse",
    "POST /v1/responses",
    "Generate a stateless response",
    body=responses.ResponseRequest,
    result=response_result.ResponseResult,
    streams=True,
    statuses=CHAT,
)
COUNT_TOKENS = _inference(
    "countTokens",
    "POST /v1/messages/count_tokens",
    "Count the input tokens of a Messages-shaped input",
    body=messages.CountTokens,
    result=messages.TokenCount,
    error_shape=ErrorShape.MESSAGES,
    generates_nothing="counting generates nothing",
    statuses=COUNTING,
)
RETRIEVE_MODEL = _models(
    "retrieveModel",
    "GET /v1/models/{model}",
    "Read one model",
    result=models.Model,
    tail_parameter=True,
)
LIST_MODELS = _models(
    "listModels", "GET /v1/models", "List the models", "OQ-76", result=models.ModelList
)
CREATE_POLICY = _policies_write(
    "createPolicy",
    "POST /v1/organization/policies",
    "Create a policy draft",
    body=policies.CreatePolicy,
    result=policies.Policy,
    creates_idempotently=True,
)
RETRIEVE_POLICY = _policies_read(
    "retrievePolicy",
    "GET /v1/organization/policies/{policy_id}",
    "Read a policy",
    result=policies.Policy,
)
EDIT_POLICY = _policies_write(
    "editPolicy",
    "PATCH /v1/organization/policies/{policy_id}",
    "Edit a policy draft",
    body=policies.EditPolicy,
    result=policies.Policy,
)
PAUSE_POLICY = _policies_write(
    "pausePolicy",
    "POST /v1/organization/policies/{policy_id}/pause",
    "Pause a published policy",
    body=policies.PausePolicy,
    result=policies.Policy,
)
LIST_EFFECTIVE_POLICIES = _policies_read(
    "listEffectivePolicies",
    "GET /v1/organization/projects/{project_id}/effective_policies",
    "List the policies that apply to a project by themselves",
    result=policies.EffectivePolicyList,
)
CREATE_PROJECT_KEY = declare(
    "createProjectKey",
    "POST /v1/organization/projects/{project_id}/api_keys",
    "Create a project key",
    tag="Project keys",
    permission=Permission.PROJECT_API_KEYS_CREATE,
    body=keys.CreateProjectKey,
    result=keys.ProjectKey,
    creates_idempotently=True,
)
ARCHIVE_PROJECT = declare(
    "archiveProject",
    "POST /v1/organization/projects/{project_id}/archive",
    "Archive a project",
    tag="Projects",
    permission=Permission.PROJECTS_CREATE,
    result=projects.ProjectDeleted,
)
LIST_ADMIN_KEYS = declare(
    "listAdminKeys",
    "GET /v1/organization/admin_api_keys",
    "List the Admin keys",
    tag="Admin keys",
    permission=Permission.ADMIN_API_KEYS_READ,
    query=listing.AdminKeysQuery,
    result=keys.AdminKeyList,
)
REVOKE_ADMIN_KEY = declare(
    "revokeAdminKey",
    "DELETE /v1/organization/admin_api_keys/{api_key_id}",
    "Revoke an Admin key",
    tag="Admin keys",
    permission=Permission.ADMIN_API_KEYS_REVOKE,
    result=keys.AdminKeyDeleted,
)
REPORT_COSTS = declare(
    "reportCosts",
    "GET /v1/organization/costs",
    "Report the costs in daily buckets",
    tag="Reports",
    permission=Permission.BILLING_READ,
    query=costs.CostsQuery,
    result=costs.CostPage,
)

OPERATIONS = (
    *declared_in(globals()),
    *declared_in(vars(compat_operations)),
    *declared_in(vars(organization_operations)),
    *declared_in(vars(manage_operations)),
    *declared_in(vars(alert_operations)),
)
"""All operations, in the order of the OpenAPI document."""
