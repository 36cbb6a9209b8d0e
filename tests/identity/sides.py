"""Two organizations that must not see each other, and the operations that take an ID."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.activity.records import Customer
from tests.identity.table import BODIES
from tests.support.limits import set_limit
from tests.support.organization_fixture import HeldAdminKey, HeldProjectKey, OrganizationFixture
from tests.support.policies import new_policy
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.base.ids import GrantId, policy_id_text, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.traffic import TrafficLimits
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, GrantKind, Period
from tollhouse.projects.types import Project

GIVEN = "/v1/organization"
MANAGE = "/manage/v1/organization"

Operations = dict[str, tuple[str, str, Mapping[str, object] | None]]

PROJECT_OPERATIONS: Operations = {
    "createProjectKey": ("POST", GIVEN + "/projects/{id}/api_keys", {"name": "a key"}),
    "archiveProject": ("POST", GIVEN + "/projects/{id}/archive", None),
    "listEffectivePolicies": ("GET", GIVEN + "/projects/{id}/effective_policies", None),
    "retrieveProject": ("GET", MANAGE + "/projects/{id}", None),
    "editProject": ("PATCH", MANAGE + "/projects/{id}", {"name": "taken over"}),
    "listProjectKeys": ("GET", MANAGE + "/projects/{id}/api_keys", None),
    "createManagedProjectKey": ("POST", MANAGE + "/projects/{id}/api_keys", {"name": "a key"}),
}
KEY_OPERATIONS: Operations = {
    "retrieveProjectKey": ("GET", "", None),
    "rotateProjectKey": ("POST", "/rotate", {"overlap_seconds": 0}),
    "endPreviousProjectKeyValue": ("POST", "/end_previous", None),
    "suspendProjectKey": ("POST", "/suspend", None),
    "resumeProjectKey": ("POST", "/resume", None),
    "revokeProjectKey": ("POST", "/revoke", None),
}
POLICY_OPERATIONS: Operations = {
    "retrievePolicy": ("GET", GIVEN + "/policies/{id}", None),
    "editPolicy": ("PATCH", GIVEN + "/policies/{id}", {"revision": 2, "name": "taken over"}),
    "pausePolicy": ("POST", GIVEN + "/policies/{id}/pause", {"revision": 2}),
    "listPolicyVersions": ("GET", MANAGE + "/policies/{id}/versions", None),
    "listPolicyDecisions": ("GET", MANAGE + "/policies/{id}/decisions", None),
    "reportPolicy": ("GET", MANAGE + "/policies/{id}/rollups?start_time=0&end_time=1", None),
    "retrievePolicyVersion": ("GET", MANAGE + "/policies/{id}/versions/1", None),
    "publishPolicy": ("POST", MANAGE + "/policies/{id}/publish", {"revision": 2}),
    "resumePolicy": ("POST", MANAGE + "/policies/{id}/resume", {"revision": 2}),
    "rollBackPolicy": ("POST", MANAGE + "/policies/{id}/rollback", {"revision": 2, "version": 1}),
    "retrieveManagedPolicy": ("GET", MANAGE + "/policies/{id}", None),
    "editManagedPolicy": ("PATCH", MANAGE + "/policies/{id}", {"revision": 2, "name": "mine"}),
    "deletePolicy": ("DELETE", MANAGE + "/policies/{id}", None),
    "lintPolicy": ("POST", MANAGE + "/policies/{id}/lint", {}),
    "testPolicy": ("POST", MANAGE + "/policies/{id}/test", {"text": "Some text."}),
}
ADMIN_KEY_OPERATIONS: Operations = {
    "revokeAdminKey": ("DELETE", GIVEN + "/admin_api_keys/{id}", None),
    "narrowAdminKey": ("POST", MANAGE + "/admin_api_keys/{id}/narrow", BODIES["narrowAdminKey"]),
    "retrieveAdminKey": ("GET", MANAGE + "/admin_api_keys/{id}", None),
}
_ALERT = MANAGE + "/alert_subscriptions/{id}"
ALERT_OPERATIONS: Operations = {
    "retrieveAlertSubscription": ("GET", _ALERT, None),
    "editAlertSubscription": ("PUT", _ALERT, BODIES["editAlertSubscription"]),
    "deleteAlertSubscription": ("DELETE", _ALERT, None),
    "rotateAlertSecret": ("POST", _ALERT + "/rotate_secret", BODIES["rotateAlertSecret"]),
    "testAlertSubscription": ("POST", _ALERT + "/test", None),
    "retryAlertDeliveries": ("POST", _ALERT + "/retry", None),
}


@dataclass(frozen=True)
class Side:
    """What one organization has."""

    org: OrganizationFixture
    project: Project
    key: HeldProjectKey
    admin: HeldAdminKey
    policy_id: str

    async def audit_rows(self) -> int:
        async with self.org.database.transaction() as tx:
            return await tx.fetch_value(
                "SELECT count(*) FROM audit_log WHERE organization_id = $1",
                self.org.organization_id,
            )


async def new_side(org: OrganizationFixture) -> Side:
    project, policy = await org.project(), await new_policy(org, ["publish"])
    key, admin = await org.project_key(project), await org.admin_key()
    return Side(org, project, key, admin, policy_id_text(policy.id))


async def new_entry(org: OrganizationFixture) -> str:
    """The ID of an entry of the organization's credit."""
    async with org.database.mutation(org.authority()) as tx:
        grant = await ledger.grant(
            tx,
            grant_id=GrantId(time_ordered_uuid()),
            kind=GrantKind.SANDBOX,
            amount=PicoUsd(1),
            reason="a test",
        )
    return str(grant.id)


async def new_limit(org: OrganizationFixture) -> str:
    """The ID of the organization's own rate limit."""
    return (await set_limit(org, TrafficLimits(requests_per_minute=1))).place.text


async def new_cap(org: OrganizationFixture) -> str:
    """The ID of the organization's own spending limit."""
    place = CapId(scope=CapScope.ORGANIZATION, scope_id=org.organization_id, period=Period.MONTH)
    async with org.database.mutation(org.authority()) as tx:
        use = await ledger.set_cap(tx, place, limit_pico_usd=PicoUsd(1), alert_percent=80)
    return use.cap.place.text


async def new_request(side: Side) -> str:
    """The ID of a request with the organization's key."""
    customer = Customer(side.org.organization_id, side.project.id, side.key.key.id)
    record = customer.record()
    recorder = RequestRecorder(side.org.database, waiting_records_max=1)
    recorder.record(record)
    await recorder.write()
    return str(record.request_id)
