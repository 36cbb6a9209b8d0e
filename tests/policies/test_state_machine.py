"""Policies against a model of them, in random walks over HTTP.

`TOLLHOUSE_STEPS` says how many steps are taken in all.
"""

import os
import secrets
from collections.abc import Iterator
from typing import ClassVar

import httpx2
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.policies.client import GIVEN, MANAGE, UNJUDGED, body_of
from tests.policies.model import NEW_DRAFT, Json, ModelPolicy, timeless
from tests.support import seeds
from tests.support.threads import Served, served

STEPS = int(os.environ.get("TOLLHOUSE_STEPS", "300"))
STEPS_PER_WALK = 50
PROJECTS = 3
POLICIES_MAX = 10

Refusal = tuple[int, str] | None

REVISION_ERRORS = st.sampled_from([0, 0, 0, 0, 0, -1, 1])
TEXTS = st.sampled_from(["a", "b", "c"])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXTS,
        "description": TEXTS,
        "rule": TEXTS.map(lambda text: f"Is it {text}?"),
        "direction": st.sampled_from(["request", "response", "both"]),
        "mode": st.sampled_from(["monitoring", "enforcing"]),
        "scope": st.sampled_from(["organization", "projects", "unattached"]),
        "project_ids": st.lists(st.integers(0, PROJECTS - 1), unique=True),
        "match_threshold_basis_points": st.sampled_from([None, 1, 5000, 9999]),
    },
)


def _has_room(machine: "PolicyMachine") -> bool:
    return len(machine.model) < POLICIES_MAX


class PolicyMachine(RuleBasedStateMachine):
    """One organization with three projects, of which the last is archived."""

    running: ClassVar[Served]
    steps_taken: ClassVar[int] = 0
    policies = Bundle[str]("policies")

    def __init__(self) -> None:
        super().__init__()
        org = self.running.new_organization_fixture()
        projects = [self.running.do(org.project()) for _ in range(PROJECTS)]
        self.running.do(org.archive(projects[-1]))
        self.project_ids = [str(project.id) for project in projects]
        self.client = self.running.client(org)
        self.model: dict[str, ModelPolicy] = {}
        self.turn = 0

    def teardown(self) -> None:
        self.client.close()

    def _named(self, fields: Json) -> Json:
        if "project_ids" not in fields:
            return fields
        return fields | {"project_ids": [self.project_ids[n] for n in fields["project_ids"]]}

    def _check(self, policy_id: str, answer: httpx2.Response, refusal: Refusal) -> None:
        """The model has gone the step already."""
        PolicyMachine.steps_taken += 1
        policy = self.model[policy_id]
        if refusal is not None:
            assert (answer.status_code, answer.json()["error"]["code"]) == refusal
            if answer.status_code == 409:
                assert answer.headers["x-should-retry"] == "false"
            answer = self.client.get(f"{GIVEN}/policies/{policy_id}")
        assert timeless(body_of(answer)) == policy.shown()

    @precondition(_has_room)
    @rule(target=policies, fields=FIELDS)
    def create(self, fields: Json) -> str:
        body = {"name": "a", "rule": "Is it a?"} | self._named(fields)
        answer = self.client.post(
            f"{GIVEN}/policies", json=body, headers={"Idempotency-Key": secrets.token_hex(8)}
        )
        policy_id: str = answer.json()["id"]
        name, description = body.pop("name"), body.pop("description", "")
        self.model[policy_id] = ModelPolicy(policy_id, name, description, NEW_DRAFT | body)
        self._check(policy_id, answer, None)
        return policy_id

    @rule(policy_id=policies, error=REVISION_ERRORS, fields=FIELDS)
    def edit(self, policy_id: str, error: int, fields: Json) -> None:
        revision, changes = self._revision(policy_id, error), self._named(fields)
        path = f"{GIVEN}/policies/{policy_id}"
        answer = self.client.patch(path, json={"revision": revision, **changes})
        self._check(policy_id, answer, self.model[policy_id].edit(revision, changes))

    @rule(policy_id=policies, error=REVISION_ERRORS)
    def publish(self, policy_id: str, error: int) -> None:
        revision = self._revision(policy_id, error)
        answer = self._post(MANAGE, policy_id, "publish", revision=revision)
        self._check(policy_id, answer, self.model[policy_id].publish(revision, self._turn()))

    @rule(policy_id=policies, error=REVISION_ERRORS)
    def pause(self, policy_id: str, error: int) -> None:
        revision = self._revision(policy_id, error)
        answer = self._post(GIVEN, policy_id, "pause", revision=revision)
        self._check(policy_id, answer, self.model[policy_id].pause(revision))

    @rule(policy_id=policies, error=REVISION_ERRORS)
    def resume(self, policy_id: str, error: int) -> None:
        revision = self._revision(policy_id, error)
        answer = self._post(MANAGE, policy_id, "resume", revision=revision)
        self._check(policy_id, answer, self.model[policy_id].resume(revision))

    @rule(policy_id=policies, error=REVISION_ERRORS, version=st.integers(1, 4))
    def roll_back(self, policy_id: str, error: int, version: int) -> None:
        revision = self._revision(policy_id, error)
        answer = self._post(MANAGE, policy_id, "rollback", revision=revision, version=version)
        refusal = self.model[policy_id].roll_back(revision, version, self._turn())
        self._check(policy_id, answer, refusal)

    @rule(policy_id=policies)
    def read_the_history(self, policy_id: str) -> None:
        PolicyMachine.steps_taken += 1
        policy = self.model[policy_id]
        path = f"{MANAGE}/policies/{policy_id}/versions"
        listed = body_of(self.client.get(path, params={"limit": 100}))["data"]

        numbers = range(len(policy.versions), 0, -1)
        assert [timeless(one) for one in listed] == [policy.shown_version(n) for n in numbers]

    @invariant()
    def what_applies_is_what_the_model_says(self) -> None:
        project_id = self.project_ids[self.turn % PROJECTS]
        answer = self.client.get(f"{GIVEN}/projects/{project_id}/effective_policies")

        applying = [one for one in self.model.values() if one.applies_to(project_id)]
        applying.sort(key=lambda one: one.published_turn)
        assert answer.json()["data"] == [one.shown_effective() for one in applying]

    def _revision(self, policy_id: str, error: int) -> int:
        return max(1, self.model[policy_id].revision + error)

    def _turn(self) -> int:
        self.turn += 1
        return self.turn

    def _post(self, prefix: str, policy_id: str, verb: str, **body: int) -> httpx2.Response:
        sent = body | UNJUDGED if prefix == MANAGE else body
        return self.client.post(f"{prefix}/policies/{policy_id}/{verb}", json=sent)


@pytest.fixture(scope="module")
def running(migrated_template: str) -> Iterator[Served]:
    with served(migrated_template) as started:
        yield started


def test_policies_go_every_way_that_their_model_goes(running: Served) -> None:
    PolicyMachine.running = running
    rounds = 0
    while PolicyMachine.steps_taken < STEPS:
        walks = (STEPS - PolicyMachine.steps_taken) // STEPS_PER_WALK + 1
        drawn = seed(seeds.seed() + rounds)
        run_state_machine_as_test(drawn(PolicyMachine), settings=_walks(walks))
        rounds += 1


def _walks(count: int) -> settings:
    return settings(
        max_examples=count,
        stateful_step_count=STEPS_PER_WALK,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
