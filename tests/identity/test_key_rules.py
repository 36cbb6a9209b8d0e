"""Decisions about keys at their very instants, and grants that nobody may exceed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import (
    AdminKeyId,
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    time_ordered_uuid,
)
from tollhouse.base.permissions import Permission
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.keys import rules
from tollhouse.keys.errors import (
    ExpiryExceedsCreator,
    ExpiryExceedsRotator,
    InvalidKey,
    PermissionsExceedCreator,
)
from tollhouse.keys.types import (
    Admin,
    AdminKey,
    KeyKind,
    KeyStatus,
    KnownKey,
    ProjectKey,
    RequiredPermission,
)

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
ORGANIZATION = OrganizationId(time_ordered_uuid())
ADMIN = Admin(
    organization_id=ORGANIZATION,
    key_id=AdminKeyId(time_ordered_uuid()),
    permissions=frozenset({"billing:read", "billing:write"}),
    holds_all=False,
    expires_at=NOW,
)
KEY = ProjectKey(
    organization_id=ORGANIZATION,
    id=ProjectKeyId(time_ordered_uuid()),
    project_id=ProjectId(time_ordered_uuid()),
    project_name="a project",
    name="a key",
    redacted_value="...",
    permissions=("models:read",),
    allowed_models=None,
    created_at=NOW - timedelta(days=1),
    last_used_at=None,
    expires_at=NOW,
    suspended_at=None,
    revoked_at=None,
)


@pytest.mark.parametrize(
    ("now", "expected"),
    [(NOW - INSTANT, KeyStatus.ACTIVE), (NOW, KeyStatus.EXPIRED)],
)
def test_a_project_key_expires_at_its_instant(now: datetime, expected: KeyStatus) -> None:
    assert rules.status(KEY, now=now) is expected


@pytest.mark.parametrize(("now", "is_alive"), [(NOW - INSTANT, True), (NOW, False)])
def test_an_admin_key_expires_at_its_instant(now: datetime, *, is_alive: bool) -> None:
    key = AdminKey(
        organization_id=ORGANIZATION,
        id=ADMIN.key_id,
        name="a key",
        redacted_value="...",
        permissions=None,
        created_at=NOW - timedelta(days=1),
        last_used_at=None,
        expires_at=NOW,
        revoked_at=None,
    )

    assert rules.is_alive(key, now=now) is is_alive
    assert rules.is_alive(replace(key, expires_at=None), now=now)
    assert not rules.is_alive(replace(key, revoked_at=now), now=now)


def test_a_known_key_opens_nothing_from_its_instant_on() -> None:
    known = KnownKey(
        kind=KeyKind.ADMIN,
        organization_id=ORGANIZATION,
        organization_status="active",
        policy_version=1,
        catalog_version=1,
        admin_key_id=ADMIN.key_id,
        project_key_id=None,
        project_id=None,
        is_project_archived=False,
        permissions=frozenset(),
        holds_all=True,
        allowed_models=None,
        granted_checks=frozenset(),
        is_suspended=False,
        is_revoked=False,
        expires_at=NOW,
        limits=UNLIMITED_EVERYWHERE,
    )
    demand = RequiredPermission(
        kind=KeyKind.ADMIN, permission=Permission.BILLING_WRITE, survives_archive=False
    )

    assert rules.authorize(known, demand, now=NOW - INSTANT).key_id == ADMIN.key_id
    with pytest.raises(InvalidKey):
        rules.authorize(known, demand, now=NOW)


@pytest.mark.parametrize("wanted", [None, (), ("billing:read",), ("policies:write",)])
def test_the_command_line_and_a_key_that_holds_all_grant_anything(
    wanted: tuple[str, ...] | None,
) -> None:
    assert rules.granted(None, wanted) == wanted
    assert rules.granted(replace(ADMIN, holds_all=True), wanted) == wanted


@pytest.mark.parametrize("wanted", [(), ("billing:read",), ("billing:read", "billing:write")])
def test_a_key_grants_what_it_holds(wanted: tuple[str, ...]) -> None:
    assert rules.granted(ADMIN, wanted) == wanted


@pytest.mark.guarantee("T14")
@pytest.mark.parametrize("wanted", [None, ("policies:write",), ("billing:read", "policies:write")])
def test_a_key_grants_no_more_than_it_holds(wanted: tuple[str, ...] | None) -> None:
    with pytest.raises(PermissionsExceedCreator):
        rules.granted(ADMIN, wanted)


@pytest.mark.guarantee("T14")
@pytest.mark.parametrize(
    ("creator_until", "until", "refusal"),
    [
        (None, None, None),
        (None, NOW, None),
        (NOW, NOW - INSTANT, None),
        (NOW, NOW, None),
        (NOW, NOW + INSTANT, ExpiryExceedsCreator),
        (NOW, None, ExpiryExceedsCreator),
    ],
)
def test_nothing_outlives_the_key_that_makes_it(
    creator_until: datetime | None, until: datetime | None, refusal: type[GatewayError] | None
) -> None:
    creator = replace(ADMIN, expires_at=creator_until)

    if refusal is None:
        rules.check_expiry(creator, until)
        return
    with pytest.raises(refusal):
        rules.check_expiry(creator, until)


def test_a_secret_is_rotated_by_keys_that_live_as_long_and_by_the_command_line() -> None:
    before, later = NOW - INSTANT, replace(ADMIN, expires_at=NOW - INSTANT)
    rotate = partial(rules.rotate, KEY, redacted_value="new", now=before, overlap=INSTANT)

    for rotator in (None, ADMIN, replace(ADMIN, expires_at=None)):
        rotated = rotate(rotator=rotator)
        assert rotated == replace(KEY, redacted_value="new", previous_value_expires_at=NOW)
    with pytest.raises(ExpiryExceedsRotator):
        rotate(rotator=later)
