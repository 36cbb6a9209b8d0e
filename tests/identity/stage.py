"""Every kind of credential at once, in one database behind one gateway."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.activity.records import Customer
from tests.alerts.subscribing import subscribe
from tests.identity.table import ADMIN_PERMISSIONS, CUSTOMER_PERMISSIONS, Row
from tests.support.credentials import ADMIN_PREFIX, PROJECT_PREFIX, malformed_keys, unknown_key
from tests.support.gateway import Gateway
from tests.support.limits import set_limit
from tests.support.organization_fixture import (
    HeldProjectKey,
    OrganizationFixture,
    new_organization_fixture,
)
from tests.support.policies import STEPS, new_policy
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.alerts.types import AlertThresholds
from tollhouse.base.ids import policy_id_text
from tollhouse.base.money import PicoUsd
from tollhouse.base.traffic import TrafficLimits
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, Period
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.storage.database import Database

PREFIXES = {"customer": PROJECT_PREFIX, "admin": ADMIN_PREFIX}
OTHER_KINDS = {"customer": "admin", "admin": "customer"}
PERMISSIONS = {"customer": CUSTOMER_PERMISSIONS, "admin": ADMIN_PERMISSIONS}


@dataclass(frozen=True)
class Stage:
    """`keys` holds a value by credential and kind; `targets` are IDs that exist."""

    gateway: Gateway
    database: Database
    home: OrganizationFixture
    foreign: OrganizationFixture
    keys: dict[tuple[str, str], str]
    targets: dict[str, str]

    def key(self, credential: str, row: Row) -> str | None:
        """What is sent for a row of the matrix; nothing for no credential."""
        if credential == "none":
            return None
        other_kind = OTHER_KINDS[row.kind]
        names = {
            "without the permission": (f"all but {row.permission}", row.kind),
            "only the permission": (f"only {row.permission}", row.kind),
            "wrong kind": ("right", other_kind),
            "wrong kind and revoked": ("revoked", other_kind),
            "suspended key": ("suspended key", "customer"),
            "key of an archived project": ("key of an archived project", "customer"),
        }
        return self.keys[names.get(credential, (credential, row.kind))]

    async def fresh_targets(self, operation: str) -> dict[str, str]:
        """Things of the home organization that the operation may change for good."""
        project = await self.home.project()
        project_key = await self.home.project_key(project)
        admin_key = await self.home.admin_key()
        policy = await new_policy(self.home, STEPS.get(operation, ()))
        return {
            "project_id": str(project.id),
            "project_key_id": str(project_key.key.id),
            "admin_key_id": str(admin_key.key.id),
            "policy_id": policy_id_text(policy.id),
            "version": "1",
            "request_id": await self._recorded(project_key),
            # An organization may have fifty.
            "alert_subscription_id": await subscription_id(self.home)
            if "Alert" in operation
            else self.targets.get("alert_subscription_id", ""),
            "model": "example/model-a",
        }

    async def _recorded(self, held: HeldProjectKey) -> str:
        customer = Customer(self.home.organization_id, held.key.project_id, held.key.id)
        record = customer.record()
        recorder = RequestRecorder(self.database, waiting_records_max=1)
        recorder.record(record)
        await recorder.write()
        return str(record.request_id)

    async def set_caps(self) -> None:
        """On both organizations, so that either can clear its own."""
        for org in (self.home, self.foreign):
            async with self.database.mutation(org.authority()) as tx:
                place = CapId(
                    scope=CapScope.ORGANIZATION, scope_id=org.organization_id, period=Period.MONTH
                )
                await ledger.set_cap(tx, place, limit_pico_usd=PicoUsd(1), alert_percent=80)

    async def set_limits(self) -> None:
        """On both organizations, so that either can clear its own."""
        for org in (self.home, self.foreign):
            await set_limit(org, TrafficLimits(requests_per_minute=1))

    async def audit_rows(self) -> int:
        async with self.database.transaction() as tx:
            return await tx.fetch_value("SELECT count(*) FROM audit_log")


async def subscription_id(org: OrganizationFixture) -> str:
    """The ID of a new alert subscription."""
    subscription, _ = await subscribe(org, AlertThresholds(cap_percents=(80,)))
    return str(subscription.id)


def path_of(row: Row, targets: dict[str, str]) -> str:
    """The row's path with IDs in it; one name stands for two kinds of key."""
    is_admin_key = "/admin_api_keys/" in row.path
    api_key_id = targets["admin_key_id" if is_admin_key else "project_key_id"]
    return row.path.format_map(targets | {"api_key_id": api_key_id})


async def set_stage(gateway: Gateway, database: Database) -> Stage:
    home = await new_organization_fixture(database)
    keys = await _keys_of_home(home)
    foreign = await new_organization_fixture(database)
    keys |= await _right_keys("foreign", foreign)
    for status in (OrganizationStatus.SUSPENDED, OrganizationStatus.CLOSED):
        org = await new_organization_fixture(database)
        keys |= await _right_keys(f"{status} organization", org)
        await org.set_status(status)
    for kind, prefix in PREFIXES.items():
        keys["malformed", kind] = malformed_keys(prefix)["wrong checksum"]
        keys["unknown", kind] = unknown_key(prefix)
    stage = Stage(
        gateway=gateway, database=database, home=home, foreign=foreign, keys=keys, targets={}
    )
    stage.targets.update(await stage.fresh_targets("anyAlert"))
    return stage


async def _keys_of_home(home: OrganizationFixture) -> dict[tuple[str, str], str]:
    keys = await _right_keys("right", home)
    for kind, permissions in PERMISSIONS.items():
        for permission in permissions:
            others = tuple(other for other in permissions if other != permission)
            keys[f"all but {permission}", kind] = await _narrow_key(home, kind, others)
            keys[f"only {permission}", kind] = await _narrow_key(home, kind, (permission,))
    return keys | await _ended_keys(home)


async def _right_keys(name: str, org: OrganizationFixture) -> dict[tuple[str, str], str]:
    project = await org.project()
    return {
        (name, "customer"): (await org.project_key(project)).value,
        (name, "admin"): (await org.admin_key()).value,
    }


async def _narrow_key(org: OrganizationFixture, kind: str, permissions: tuple[str, ...]) -> str:
    if kind == "admin":
        return (await org.admin_key(permissions)).value
    return (await org.project_key(await org.project(), permissions)).value


async def _ended_keys(home: OrganizationFixture) -> dict[tuple[str, str], str]:
    past = datetime.now(UTC) - timedelta(seconds=1)
    project, archived = await home.project(), await home.project()
    revoked, suspended = await home.project_key(project), await home.project_key(project)
    revoked_admin = await home.admin_key()
    of_archived = await home.project_key(archived)
    await home.revoke_project_key(revoked)
    await home.suspend_project_key(suspended)
    await home.revoke_admin_key(revoked_admin)
    await home.archive(archived)
    return {
        ("revoked", "customer"): revoked.value,
        ("revoked", "admin"): revoked_admin.value,
        ("expired", "customer"): (await home.project_key(project, expires_at=past)).value,
        ("expired", "admin"): (await home.admin_key(expires_at=past)).value,
        ("suspended key", "customer"): suspended.value,
        ("key of an archived project", "customer"): of_archived.value,
    }
