"""Policies and their versions are read within their organization, whoever asks before."""

import pytest

from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import new_policy
from tollhouse.base.errors import UnknownCursor
from tollhouse.policies import service
from tollhouse.policies.errors import PolicyNotFound, PolicyVersionNotFound

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_policy_of_one_organization_is_not_there_for_another(
    org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    policy = await new_policy(org, ("publish",))
    project = await org.project()
    stranger = other_org.organization_id

    async with org.database.transaction() as tx:
        own = await service.retrieve_version(tx, org.organization_id, policy.id, 1)
        with pytest.raises(PolicyNotFound):
            await service.retrieve(tx, stranger, policy.id)
        with pytest.raises(PolicyVersionNotFound):
            await service.retrieve_version(tx, stranger, policy.id, 1)
        with pytest.raises(UnknownCursor):
            await service.page_of_versions(tx, stranger, policy.id, after=1, limit=10)
        versions = await service.page_of_versions(tx, stranger, policy.id, after=None, limit=10)
        effective = await service.effective(tx, stranger, project.id)
        of_own = await service.effective(tx, org.organization_id, project.id)

    assert own.number == 1
    assert versions == []
    assert effective == []
    assert len(of_own) == 1
