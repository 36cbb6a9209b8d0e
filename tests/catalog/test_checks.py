"""Checks that an organization was granted: written once, audited, bounded."""

import asyncio

import pytest

from tests.identity.audit_rows import audit_rows
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.organizations import service
from tollhouse.organizations.errors import OrganizationClosed, OrganizationNotFound, TooManyChecks
from tollhouse.organizations.types import OrganizationStatus


async def names(org: OrganizationFixture) -> list[str]:
    async with org.database.transaction() as tx:
        return [check.name for check in await service.checks(tx, org.organization_id)]


async def test_checks_come_and_go_each_with_one_entry(
    org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    rows_before = len(await audit_rows(org))

    await org.grant_check("identity")
    await org.grant_check("export-control")
    await org.grant_check("identity")
    both = await names(org)
    await org.revoke_check("identity")
    await org.revoke_check("identity")
    await org.revoke_check("never granted")

    assert both == ["export-control", "identity"]
    assert await names(org) == ["export-control"]
    assert await names(other_org) == []
    entries = (await audit_rows(org))[rows_before:]
    assert [(entry["action"], entry["resource_id"]) for entry in entries] == [
        ("organization_check.grant", "identity"),
        ("organization_check.grant", "export-control"),
        ("organization_check.revoke", "identity"),
    ]
    assert entries[2]["digest_before"] == entries[0]["digest_after"]


async def test_their_number_is_bounded_however_many_are_granted_at_once(
    org: OrganizationFixture,
) -> None:
    for number in range(service.CHECKS_MAX - 1):
        await org.grant_check(f"check-{number}")

    outcomes = await asyncio.gather(
        *(org.grant_check(f"another-{number}") for number in range(5)), return_exceptions=True
    )

    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, TooManyChecks) for outcome in outcomes) == 4
    assert len(await names(org)) == service.CHECKS_MAX
    await org.grant_check("check-0")


async def test_nothing_is_granted_to_a_closed_organization_but_checks_can_be_revoked(
    org: OrganizationFixture,
) -> None:
    await org.grant_check("identity")
    await org.set_status(OrganizationStatus.CLOSED)

    with pytest.raises(OrganizationClosed):
        await org.grant_check("export-control")
    await org.revoke_check("identity")

    assert await names(org) == []


async def test_an_unknown_organization_is_refused(org: OrganizationFixture) -> None:
    nobody = OrganizationFixture(org.database, OrganizationId(time_ordered_uuid()))

    for verb in (nobody.grant_check, nobody.revoke_check):
        with pytest.raises(OrganizationNotFound):
            await verb("identity")
