"""Requests made up from the OpenAPI document: no answer fails, none is outside the document.

`TOLLHOUSE_CASES` says how many requests are sent in all, over every route of the organization and
of models. Schemathesis serves as a library: it makes up requests and judges answers.
"""
# Schemathesis leaves some of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.policies import new_policy
from tests.support.routes import ROUTES
from tests.support.threads import Served, served
from tollhouse.base.ids import policy_id_text
from tollhouse.contract.operation import Credential

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
MADE_UP = schemathesis.openapi.from_path(str(DOCUMENT))
BUILT = sorted(
    (route.operation.path, route.operation.method)
    for route in ROUTES
    if route.handler is not None
    and (route.operation.access.credential is Credential.ADMIN or route.operation.method == "GET")
)
KINDS = {
    "sound, about what exists": GenerationMode.POSITIVE,
    "sound": GenerationMode.POSITIVE,
    "unsound": GenerationMode.NEGATIVE,
}
CASES = int(os.environ.get("TOLLHOUSE_CASES", "400"))
CASES_EACH = CASES // (len(BUILT) * len(KINDS)) + 1
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
UNJUDGED = {
    "/manage/v1/organization/policies/{policy_id}/test",
    "/manage/v1/organization/policy_rules/test",
}
"""There is no judge here, so that a sound request is 503, which is in the document."""


@dataclass(frozen=True)
class Target:
    """A gateway, sessions with an Admin key and a project key, and IDs that exist."""

    base_url: str
    session: requests.Session
    customer: requests.Session
    ids: dict[str, str]
    admin_key_id: str

    def path_parameters(self, path: str) -> dict[str, str]:
        ids = self.ids | ({"api_key_id": self.admin_key_id} if "/admin_" in path else {})
        return {name: value for name, value in ids.items() if f"{{{name}}}" in path}

    def make_real(self, body: dict[str, Any]) -> None:
        """Revisions and projects made up at random would show nothing but that."""
        if "revision" in body:
            policy_id = self.ids["policy_id"]
            policy = self.session.get(f"{self.base_url}/v1/organization/policies/{policy_id}")
            body["revision"] = policy.json()["revision"]
        if "project_ids" in body:
            body["project_ids"] = [self.ids["project_id"]] * len(body["project_ids"])


def session_with(key: str) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.headers["authorization"] = f"Bearer {key}"
    return session


@pytest.fixture(scope="module")
def running(migrated_template: str) -> Iterator[Served]:
    with served(migrated_template) as started:
        yield started


@pytest.fixture(scope="module")
def target(running: Served) -> Iterator[Target]:
    org = running.new_organization_fixture()
    project = running.do(org.project())
    policy = running.do(new_policy(org, ["publish", "publish", "publish"]))
    # The one that is asked about may be revoked meanwhile.
    own_key, other_key = (running.do(org.project_key(project)) for _ in range(2))
    with (
        session_with(running.do(org.admin_key()).value) as session,
        session_with(own_key.value) as customer,
    ):
        yield Target(
            base_url=running.gateway.base_url,
            session=session,
            customer=customer,
            ids={
                "project_id": str(project.id),
                "api_key_id": str(other_key.key.id),
                "model": "example/model-a",
                "policy_id": policy_id_text(policy.id),
                "version": "2",
            },
            admin_key_id=str(running.do(org.admin_key()).key.id),
        )


@pytest.mark.guarantee("T27")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("path", "method"), BUILT)
def test_every_answer_stands_in_the_document(
    target: Target, path: str, method: str, kind: str
) -> None:
    exists = "exists" in kind
    fixed = target.path_parameters(path) if exists else None
    strategy = MADE_UP[path][method].as_strategy(KINDS[kind], path_parameters=fixed)

    @given(strategy)
    @settings(
        max_examples=CASES_EACH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.data_too_large,
        ],
    )
    def send(case: Case[Any]) -> None:
        if exists and isinstance(case.body, dict):
            target.make_real(case.body)
        session = target.session if "/organization/" in path else target.customer
        answer = case.call(base_url=target.base_url, session=session)
        checks = CHECKS[1:] if path in UNJUDGED and answer.status_code == 503 else CHECKS
        case.validate_response(answer, checks=checks)

    send()
