"""The table of operations against the specification's, and what it refuses to hold."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contract.cases import outcome_of
from tests.identity.table import BODIES
from tollhouse.base.permissions import Permission
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.manage_operations import LIST_PROJECTS
from tollhouse.contract.operation import (
    Access,
    Credential,
    Exemption,
    Guard,
    MisdeclaredOperation,
    Operation,
)
from tollhouse.contract.operations import (
    CREATE_CHAT_COMPLETION,
    LIST_MODELS,
    OPERATIONS,
    RETRIEVE_POLICY,
    routes_of,
)
from tollhouse.contract.origins import Origin

REGISTER = Path(__file__).parents[2] / "docs" / "open-questions.md"
GIVEN_TABLE = [
    ("POST", "/v1/chat/completions", "inference:write"),
    ("POST", "/v1/responses", "inference:write"),
    ("POST", "/v1/messages/count_tokens", "inference:write"),
    ("GET", "/v1/models/{model}", "models:read"),
    ("POST", "/v1/organization/policies", "policies:write"),
    ("GET", "/v1/organization/policies/{policy_id}", "policies:read"),
    ("PATCH", "/v1/organization/policies/{policy_id}", "policies:write"),
    ("POST", "/v1/organization/policies/{policy_id}/pause", "policies:write"),
    ("GET", "/v1/organization/projects/{project_id}/effective_policies", "policies:read"),
    ("POST", "/v1/organization/projects/{project_id}/api_keys", "project_api_keys:create"),
    ("POST", "/v1/organization/projects/{project_id}/archive", "projects:create"),
    ("GET", "/v1/organization/admin_api_keys", "admin_api_keys:read"),
    ("DELETE", "/v1/organization/admin_api_keys/{api_key_id}", "admin_api_keys:revoke"),
    ("GET", "/v1/organization/costs", "billing:read"),
]
PROJECTS = "/manage/v1/organization/projects"
KEY = f"{PROJECTS}/{{project_id}}/api_keys/{{api_key_id}}"
POLICIES = "/manage/v1/organization/policies"
CREDITS = "/manage/v1/organization/credits"
LIMITS = "/manage/v1/organization/spending_limits"
ALERTS = "/manage/v1/organization/alert_subscriptions"
RATE_LIMITS = "/manage/v1/organization/rate_limits"
REQUESTS = "/manage/v1/organization/requests"
EXTENSION_TABLE = [
    ("GET", "/manage/v1/organization", "projects:read"),
    ("GET", "/manage/v1/organization/models", "projects:read"),
    ("POST", "/manage/v1/organization/admin_api_keys", "admin_api_keys:create"),
    ("GET", "/manage/v1/organization/admin_api_keys/{api_key_id}", "admin_api_keys:read"),
    (
        "POST",
        "/manage/v1/organization/admin_api_keys/{api_key_id}/narrow",
        "admin_api_keys:revoke",
    ),
    ("GET", "/manage/v1/organization/audit", "audit:read"),
    ("GET", PROJECTS, "projects:read"),
    ("POST", PROJECTS, "projects:create"),
    ("GET", f"{PROJECTS}/{{project_id}}", "projects:read"),
    ("PATCH", f"{PROJECTS}/{{project_id}}", "projects:create"),
    ("GET", f"{PROJECTS}/{{project_id}}/api_keys", "project_api_keys:read"),
    ("GET", KEY, "project_api_keys:read"),
    ("POST", f"{PROJECTS}/{{project_id}}/api_keys", "project_api_keys:create"),
    ("POST", f"{KEY}/rotate", "project_api_keys:create"),
    ("POST", f"{KEY}/end_previous", "project_api_keys:revoke"),
    ("POST", f"{KEY}/suspend", "project_api_keys:revoke"),
    ("POST", f"{KEY}/resume", "project_api_keys:revoke"),
    ("POST", f"{KEY}/revoke", "project_api_keys:revoke"),
    ("GET", POLICIES, "policies:read"),
    ("GET", f"{POLICIES}/{{policy_id}}", "policies:read"),
    ("PATCH", f"{POLICIES}/{{policy_id}}", "policies:write"),
    ("DELETE", f"{POLICIES}/{{policy_id}}", "policies:write"),
    ("GET", f"{POLICIES}/{{policy_id}}/versions", "policies:read"),
    ("GET", f"{POLICIES}/{{policy_id}}/versions/{{version}}", "policies:read"),
    ("POST", f"{POLICIES}/{{policy_id}}/publish", "policies:write"),
    ("POST", f"{POLICIES}/{{policy_id}}/resume", "policies:write"),
    ("POST", f"{POLICIES}/{{policy_id}}/rollback", "policies:write"),
    ("POST", f"{POLICIES}/{{policy_id}}/lint", "policies:write"),
    ("POST", f"{POLICIES}/{{policy_id}}/test", "policies:write"),
    ("POST", "/manage/v1/organization/policy_rules/lint", "policies:write"),
    ("POST", "/manage/v1/organization/policy_rules/test", "policies:write"),
    ("GET", f"{POLICIES}/{{policy_id}}/decisions", "policies:read"),
    ("GET", f"{POLICIES}/{{policy_id}}/rollups", "policies:read"),
    ("GET", CREDITS, "billing:read"),
    ("GET", f"{CREDITS}/entries", "billing:read"),
    ("POST", f"{CREDITS}/test_payments", "billing:write"),
    ("GET", LIMITS, "spending_limits:read"),
    ("PUT", LIMITS, "spending_limits:write"),
    ("DELETE", LIMITS, "spending_limits:write"),
    ("GET", RATE_LIMITS, "rate_limits:read"),
    ("PUT", RATE_LIMITS, "rate_limits:write"),
    ("DELETE", RATE_LIMITS, "rate_limits:write"),
    ("GET", "/manage/v1/organization/usage", "billing:read"),
    ("GET", "/manage/v1/organization/usage/completions", "billing:read"),
    ("GET", "/manage/v1/organization/costs/focus", "billing:read"),
    ("GET", REQUESTS, "activity:read"),
    ("GET", f"{REQUESTS}/{{request_id}}", "activity:read"),
    ("GET", "/manage/v1/organization/request_rollups", "activity:read"),
    ("GET", ALERTS, "alerts:read"),
    ("POST", ALERTS, "alerts:write"),
    ("GET", f"{ALERTS}/{{alert_subscription_id}}", "alerts:read"),
    ("PUT", f"{ALERTS}/{{alert_subscription_id}}", "alerts:write"),
    ("DELETE", f"{ALERTS}/{{alert_subscription_id}}", "alerts:write"),
    ("POST", f"{ALERTS}/{{alert_subscription_id}}/rotate_secret", "alerts:write"),
    ("POST", f"{ALERTS}/{{alert_subscription_id}}/test", "alerts:write"),
    ("POST", f"{ALERTS}/{{alert_subscription_id}}/retry", "alerts:write"),
    ("GET", "/manage/v1/organization/alert_deliveries", "alerts:read"),
]
ALL_GUARDS = frozenset(Guard)


def rows(origin: Origin) -> list[tuple[str, str, str]]:
    return [
        (row.method, row.path, row.access.permission.value)
        for row in OPERATIONS
        if row.origin is origin
    ]


def test_the_given_operations_are_those_of_the_specification() -> None:
    assert rows(Origin.GIVEN) == GIVEN_TABLE


def test_only_the_list_of_models_is_adopted_under_v1() -> None:
    adopted = rows(Origin.ADOPTED)

    assert [row for row in adopted if row[1].startswith("/v1/")] == [
        ("GET", "/v1/models", "models:read")
    ]
    assert {row[1].split("/")[1] for row in adopted} == {"v1", "compat"}


def test_the_extension_is_the_table_of_the_design() -> None:
    assert sorted(rows(Origin.EXTENSION)) == sorted(EXTENSION_TABLE)


def test_every_id_and_every_route_is_declared_once() -> None:
    assert len({row.id for row in OPERATIONS}) == len(OPERATIONS)
    assert len({(row.method, row.path) for row in OPERATIONS}) == len(OPERATIONS)


def test_customer_keys_are_for_inference_and_models_only() -> None:
    customer = {row.path for row in OPERATIONS if row.access.credential is Credential.CUSTOMER}

    compatible = {row.path for row in OPERATIONS if row.path.startswith("/compat/")}
    assert customer == {path for _, path, _ in GIVEN_TABLE[:4]} | {"/v1/models"} | compatible
    assert compatible == {
        "/compat/anthropic/v1/messages",
        "/compat/anthropic/v1/messages/count_tokens",
        "/compat/anthropic/v1/models",
        "/compat/anthropic/v1/models/{model}",
    }


def test_generating_needs_every_guard_and_counting_and_models_only_limits() -> None:
    guards = {row.id: row.guards for row in OPERATIONS if row.guards}

    assert guards == {
        "createChatCompletion": ALL_GUARDS,
        "createResponse": ALL_GUARDS,
        "createMessage": ALL_GUARDS,
        "countTokens": {Guard.LIMITS},
        "countMessageTokens": {Guard.LIMITS},
        "retrieveModel": {Guard.LIMITS},
        "listModels": {Guard.LIMITS},
        "listMessagesModels": {Guard.LIMITS},
        "retrieveMessagesModel": {Guard.LIMITS},
    }


def test_only_model_routes_survive_the_archive() -> None:
    surviving = {row.id for row in OPERATIONS if row.access.survives_archive}

    assert surviving == {
        *("retrieveModel", "listModels"),
        *("retrieveMessagesModel", "listMessagesModels"),
    }


def test_only_counting_and_what_anthropics_clients_call_fail_in_the_shape_of_messages() -> None:
    assert [row.id for row in OPERATIONS if row.error_shape is ErrorShape.MESSAGES] == [
        "countTokens",
        "createMessage",
        "countMessageTokens",
        "listMessagesModels",
        "retrieveMessagesModel",
    ]


def test_every_creation_is_idempotent() -> None:
    assert [row.id for row in OPERATIONS if row.creates_idempotently] == [
        "createPolicy",
        "createProjectKey",
        "createAdminKey",
        "createProject",
        "createManagedProjectKey",
        "rotateProjectKey",
        "createTestPayment",
        "createAlertSubscription",
        "rotateAlertSecret",
    ]


def test_only_given_creations_demand_their_key() -> None:
    assert [row.id for row in OPERATIONS if row.demands_idempotency_key] == [
        "createPolicy",
        "createProjectKey",
    ]


def test_one_base_url_has_all_that_an_admin_key_calls() -> None:
    admin = [row for row in OPERATIONS if row.access.credential is Credential.ADMIN]
    routes = [route for row in admin for route in routes_of(row)]

    assert len(routes) == len(set(routes))
    for method, path, _ in GIVEN_TABLE[4:]:
        assert (method, f"/manage{path}") in routes
    assert ("POST", f"{PROJECTS}/{{project_id}}") in routes


def test_every_question_that_is_named_stands_in_the_register() -> None:
    register = set(re.findall(r"^\| (OQ-\d+) ", REGISTER.read_text(encoding="utf-8"), re.MULTILINE))

    named = {question for row in OPERATIONS for question in row.questions}
    assert named <= register


@pytest.mark.guarantee("T11")
@pytest.mark.parametrize(
    ("original", "changes"),
    [
        (CREATE_CHAT_COMPLETION, {"path": "/chat/completions"}),
        (CREATE_CHAT_COMPLETION, {"path": "/manage/v1/chat"}),
        (CREATE_CHAT_COMPLETION, {"origin": Origin.EXTENSION, "questions": ("OQ-76",)}),
        (CREATE_CHAT_COMPLETION, {"statuses": ()}),
        (LIST_MODELS, {"questions": ()}),
        (LIST_PROJECTS, {"questions": ()}),
        (LIST_PROJECTS, {"origin": Origin.GIVEN}),
        (LIST_PROJECTS, {"path": "/v1/organization/projects"}),
        (RETRIEVE_POLICY, {"exemptions": LIST_MODELS.exemptions}),
    ],
)
def test_a_row_that_contradicts_itself_cannot_be_made(original: Any, changes: Any) -> None:  # noqa: ANN401
    with pytest.raises(MisdeclaredOperation):
        replace(original, **changes)


@pytest.mark.guarantee("T11")
@pytest.mark.parametrize(
    ("credential", "permission"),
    [
        (Credential.CUSTOMER, Permission.POLICIES_READ),
        (Credential.CUSTOMER, Permission.AUDIT_READ),
        (Credential.ADMIN, Permission.INFERENCE_WRITE),
        (Credential.ADMIN, Permission.MODELS_READ),
    ],
)
def test_a_permission_of_the_other_kind_of_key_cannot_be_demanded(
    credential: Credential, permission: Permission
) -> None:
    with pytest.raises(MisdeclaredOperation):
        Access(credential=credential, permission=permission)


@pytest.mark.parametrize("reason", ["", "  "])
def test_an_exemption_without_a_reason_cannot_be_made(reason: str) -> None:
    with pytest.raises(MisdeclaredOperation):
        Exemption(guard=Guard.POLICIES, reason=reason)


def names_of(type_: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(type_)}


READ_ONLY = [
    (row, name)
    for row in OPERATIONS
    if row.body is not None and row.result is not None
    for name in sorted(names_of(row.result) - names_of(row.body))
]


@pytest.mark.guarantee("T15")
@pytest.mark.parametrize(
    ("row", "name"), READ_ONLY, ids=[f"{row.id}-{name}" for row, name in READ_ONLY]
)
def test_a_field_that_is_only_answered_cannot_be_sent(row: Operation, name: str) -> None:
    assert row.body is not None

    assert outcome_of(row.body, {**BODIES.get(row.id, {}), name: 1}) == ("unknown_parameter", name)


@pytest.mark.guarantee("T15")
def test_every_operation_with_a_body_answers_fields_that_cannot_be_sent() -> None:
    assert {row.id for row, _ in READ_ONLY} == {row.id for row in OPERATIONS if row.body}
    assert {"id", "created_at", "status", "usage"} <= {name for _, name in READ_ONLY}
