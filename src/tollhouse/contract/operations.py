"""The operations under `/v1`, and the table of all operations.

Under `/v1` is what the specification gives, and one adopted list of models.
"""

import sys
from collections.abc import Iterator
from functools import partial
from types import ModuleType

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
    money_operations,
    organization_operations,
    policies,
    policy_operations,
    projects,
    report_operations,
    response_result,
    responses,
)
from tollhouse.contract.command import Command, Words
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.operation import (
    CHAT,
    COUNTING,
    GIVEN_PREFIX,
    MANAGE_PREFIX,
    Credential,
    Operation,
    declare,
    declared_in,
)
from tollhouse.contract.origins import Origin

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
"""In OpenAI's form. The largest possible cost is held first, and the request is charged for the
tokens that were read and written. Policies may refuse the request or withhold the answer."""
CREATE_RESPONSE = _inference(
    "createResponse",
    "POST /v1/responses",
    "Generate a stateless response",
    body=responses.ResponseRequest,
    result=response_result.ResponseResult,
    streams=True,
    statuses=CHAT,
)
"""In OpenAI's form, without stored state: send the whole conversation as `input`. Held, charged and
judged like a chat completion."""
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
"""In Anthropic's form. Nothing is generated, charged or judged. The count may be an estimate, if
the model's engine cannot count."""
RETRIEVE_MODEL = _models(
    "retrieveModel",
    "GET /v1/models/{model}",
    "Read one model",
    result=models.Model,
    tail_parameter=True,
)
"""Also of a model that the organization lacks a check for; `access` then says what is missing."""
LIST_MODELS = _models(
    "listModels", "GET /v1/models", "List the models", "OQ-76", result=models.ModelList
)
"""Only the models that the key may use, in one page, with prices and options."""
CREATE_POLICY = _policies_write(
    "createPolicy",
    "POST /v1/organization/policies",
    "Create a policy draft",
    body=policies.CreatePolicy,
    result=policies.Policy,
    creates_idempotently=True,
    command=Command(
        "policy create",
        "Create a draft. A policy applies after it is published.",
        example='"No names" --rule "Does the text name a person?"',
        arguments="name",
        is_creation=True,
        words={
            "project_ids": Words(
                "project",
                "A project of the scope `projects`, by name or ID. Can be given several times.",
            ),
        },
    ),
)
"""The draft has no effect until it is published under `/manage/v1`. Send the same `Idempotency-Key`
to repeat the request safely."""
RETRIEVE_POLICY = _policies_read(
    "retrievePolicy",
    "GET /v1/organization/policies/{policy_id}",
    "Read a policy",
    result=policies.Policy,
)
"""The draft, and the published version if there is one."""
EDIT_POLICY = _policies_write(
    "editPolicy",
    "PATCH /v1/organization/policies/{policy_id}",
    "Edit a policy draft",
    body=policies.EditPolicy,
    result=policies.Policy,
)
"""Changes the fields that are sent. What is published stays in force until the draft is published.
A stale `revision` is 409."""
PAUSE_POLICY = _policies_write(
    "pausePolicy",
    "POST /v1/organization/policies/{policy_id}/pause",
    "Pause a published policy",
    body=policies.PausePolicy,
    result=policies.Policy,
    command=Command(
        "policy pause",
        "Stop applying a published policy until it is resumed.",
        example='"No names"',
        arguments="policy_id",
    ),
)
"""The policy does not apply until it is resumed under `/manage/v1`. A stale `revision`, or a policy
that is not published, is 409."""
LIST_EFFECTIVE_POLICIES = _policies_read(
    "listEffectivePolicies",
    "GET /v1/organization/projects/{project_id}/effective_policies",
    "List the policies that apply to a project by themselves",
    result=policies.EffectivePolicyList,
    command=Command(
        "policy effective",
        (
            "List the policies that apply to every request of a project, in the order of "
            "publication."
        ),
        example="search",
        arguments="project_id",
        columns="id name version direction mode scope",
    ),
)
"""The published policies of the organization's and the project's scope that are not paused, in
order of publication. A request can name further ones."""
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
"""The key never expires and gets the default permissions. Its `value` is in this answer alone, and
for 24 hours in a repetition with the same `Idempotency-Key`."""
ARCHIVE_PROJECT = declare(
    "archiveProject",
    "POST /v1/organization/projects/{project_id}/archive",
    "Archive a project",
    tag="Projects",
    permission=Permission.PROJECTS_CREATE,
    result=projects.ProjectDeleted,
    command=Command(
        "project archive",
        "Stop the keys of a project for good. Its usage stays readable.",
        example="search",
        arguments="project_id",
        question="Archive project {} for good, with all its keys?",
    ),
)
"""Ends inference with the project's keys for good. Requests in progress end normally, and its costs
stay. Archiving again has the same answer."""
LIST_ADMIN_KEYS = declare(
    "listAdminKeys",
    "GET /v1/organization/admin_api_keys",
    "List the Admin keys",
    tag="Admin keys",
    permission=Permission.ADMIN_API_KEYS_READ,
    query=listing.AdminKeysQuery,
    result=keys.AdminKeyList,
    command=Command(
        "admin-key list",
        "List the Admin keys that are not revoked.",
        example="--json",
        columns="id name redacted_value last_used_at expires_at",
    ),
)
"""Without revoked ones and without values."""
REVOKE_ADMIN_KEY = declare(
    "revokeAdminKey",
    "DELETE /v1/organization/admin_api_keys/{api_key_id}",
    "Revoke an Admin key",
    tag="Admin keys",
    permission=Permission.ADMIN_API_KEYS_REVOKE,
    result=keys.AdminKeyDeleted,
    command=Command(
        "admin-key revoke",
        "Revoke an Admin key for good, even the last one.",
        example="KEY_ID",
        arguments="api_key_id",
        question="Revoke Admin key {} for good?",
        words={
            "api_key_id": Words("key", "The Admin key, by name or ID."),
        },
    ),
)
"""Requests with the key fail from then on. Revoking again has the same answer."""
REPORT_COSTS = declare(
    "reportCosts",
    "GET /v1/organization/costs",
    "Report the costs in daily buckets",
    tag="Reports",
    permission=Permission.BILLING_READ,
    query=costs.CostsQuery,
    result=costs.CostPage,
    command=Command(
        "costs",
        "Show settled costs by the UTC day on which each request was admitted.",
        example="--from 2026-08-01 --by line_item",
        columns="start_time project_id api_key_id line_item amount",
        starts="30d",
    ),
)
"""Exact amounts of settled requests, by UTC day. Requests without a final cost are in no amount; a
header has their number."""

MODULES: tuple[ModuleType, ...] = (
    sys.modules[__name__],
    compat_operations,
    organization_operations,
    manage_operations,
    money_operations,
    report_operations,
    policy_operations,
    alert_operations,
)
"""The modules that declare operations. The docstring below each says what it does."""
OPERATIONS = tuple(row for module in MODULES for row in declared_in(vars(module)))
"""All operations, in the order of the OpenAPI document."""
_DECLARED = frozenset((row.method, row.path) for row in OPERATIONS)


def routes_of(operation: Operation) -> Iterator[tuple[str, str]]:
    """Yield the methods and paths that an operation is served at, first the declared one.

    A given Admin operation is served under `/manage/v1` too, unless another one is declared there,
    so that one base URL serves an Admin SDK (OQ-117).
    """
    yield operation.method, operation.path
    if operation.accepts_post:
        yield "POST", operation.path
    is_admin = operation.access.credential is Credential.ADMIN
    if is_admin and operation.origin is Origin.GIVEN:
        managed = MANAGE_PREFIX + operation.path.removeprefix(GIVEN_PREFIX)
        if (operation.method, managed) not in _DECLARED:
            yield operation.method, managed
