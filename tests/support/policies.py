"""Policies in any state, made by the same services that the product uses."""

from collections.abc import Sequence

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import PolicyId, time_ordered_uuid
from tollhouse.base.policies import Direction, Mode
from tollhouse.policies import service
from tollhouse.policies.types import Policy, PolicyContent, PolicyScope, Publish, Resume

CONTENT = PolicyContent(
    rule="Does the text name a person?",
    direction=Direction.BOTH,
    mode=Mode.MONITORING,
    scope=PolicyScope.ORGANIZATION,
    project_ids=(),
    match_threshold_basis_points=None,
)

STEPS: dict[str, tuple[str, ...]] = {
    "pausePolicy": ("publish",),
    "retrievePolicyVersion": ("publish",),
    "resumePolicy": ("publish", "pause"),
    "rollBackPolicy": ("publish", "publish"),
}
"""What must have happened to a draft before an operation can succeed; every step is a revision."""


async def new_policy(
    org: OrganizationFixture,
    steps: Sequence[str] = (),
    *,
    name: str = "No names",
    content: PolicyContent = CONTENT,
) -> Policy:
    """A draft after the steps, in the name of the operator."""
    policy_id = PolicyId(time_ordered_uuid())
    async with org.database.mutation(org.authority()) as tx:
        policy = await service.create(
            tx, policy_id=policy_id, name=name, description="", content=content
        )
    for step in steps:
        policy = await stepped(org, policy, step)
    return policy


async def stepped(org: OrganizationFixture, policy: Policy, step: str) -> Policy:
    """The policy after one step more."""
    async with org.database.mutation(org.authority()) as tx:
        match step:
            case "publish":
                publication = Publish(default_threshold_basis_points=5000)
            case "pause":
                return await service.pause(tx, policy.id, revision=policy.revision)
            case "resume":
                publication = Resume()
            case _:
                raise AssertionError(step)
        return await service.put_in_force(tx, policy.id, publication, revision=policy.revision)
