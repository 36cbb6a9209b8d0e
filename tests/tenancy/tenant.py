"""An organization that has something in every table of tenants."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from tests.activity.records import Customer
from tests.alerts.subscribing import outbox, subscribe
from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.support.limits import set_limit
from tests.support.organization_fixture import HeldAdminKey, HeldProjectKey, OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tollhouse.activity import store as activity
from tollhouse.activity.types import RequestRecord
from tollhouse.alerts import service as alerts
from tollhouse.alerts.types import AlertDelivery, AlertSubscription, AlertThresholds
from tollhouse.base.ids import AdminKeyId, AuditId, GrantId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.policies import Direction, EvaluationOutcome, Mode
from tollhouse.base.traffic import TrafficLimits
from tollhouse.decisions import store as decisions
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision
from tollhouse.ledger import marking, operations, verified_days
from tollhouse.ledger import service as ledger
from tollhouse.ledger.open_holds import OpenHold
from tollhouse.ledger.types import (
    CapId,
    CapScope,
    CapUse,
    Grant,
    GrantKind,
    Hold,
    Period,
    UnsettledHold,
)
from tollhouse.ledger.verified_days import DayMark
from tollhouse.limits.types import RateLimit
from tollhouse.organizations import service as organization_service
from tollhouse.organizations import store as organizations
from tollhouse.organizations.types import GrantedCheck, Organization
from tollhouse.policies.types import Policy, PolicyScope
from tollhouse.projects.types import Project
from tollhouse.storage import audit, idempotency, partitions
from tollhouse.storage.idempotency import Claim
from tollhouse.storage.partitions import DailyTable

CREDIT = 1_000_000
HELD = 1_000
SPENT = 900


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """What an organization has, to be asked for in the name of another one."""

    organization: Organization
    check: GrantedCheck
    project: Project
    project_key: HeldProjectKey
    admin_key: HeldAdminKey
    published: Policy
    paused: Policy
    grant: Grant
    caps: list[CapUse]
    limit: RateLimit
    open_hold: Hold
    settled_hold: Hold
    unsettled: UnsettledHold
    request: RequestRecord
    failed_request: RequestRecord
    record: EvaluationRecord
    claim: Claim
    audit_id: AuditId
    subscription: AlertSubscription
    delivery: AlertDelivery


async def new_tenant(org: OrganizationFixture, url: str) -> Tenant:
    ledger = await open_ledger(org, url, credit=CREDIT)
    project = await org.project()
    key = await org.project_key(project)
    async with org.database.transaction() as tx:
        await tx.execute(  # as that of a rotated key, during the overlap
            "UPDATE key_directory SET expires_at = now() + interval '1 hour' WHERE key_id = $1",
            key.key.id,
        )
    ledger = replace(ledger, project_id=project.id, key_id=key.key.id)
    for_project = replace(CONTENT, scope=PolicyScope.PROJECTS, project_ids=(project.id,))
    published = await new_policy(org, ("publish",), content=for_project)
    await new_policy(org, ("publish",), name="for all projects")
    request, failed = await _requested(org, project, key)
    open_hold, settled_hold, unsettled = await _spent(ledger)
    await _verified(org)
    subscription, delivery = await _subscribed(org)
    return Tenant(
        organization=await _organization(org),
        check=await _checked(org),
        project=project,
        project_key=key,
        admin_key=await org.admin_key(),
        published=published,
        paused=await new_policy(org, ("publish", "pause"), name="paused"),
        grant=await _granted(org),
        caps=await _capped(org, project, key),
        limit=await set_limit(org, TrafficLimits(requests_per_minute=5)),
        open_hold=open_hold,
        settled_hold=settled_hold,
        unsettled=unsettled,
        request=request,
        failed_request=failed,
        record=await _examined(org, request, published),
        claim=await _claimed(org),
        audit_id=await _last_audit(org),
        subscription=subscription,
        delivery=delivery,
    )


async def _subscribed(org: OrganizationFixture) -> tuple[AlertSubscription, AlertDelivery]:
    """Somebody is told about the credit, and was sent a test after one that failed."""
    thresholds = AlertThresholds(credit_below_pico_usd=PicoUsd(2 * CREDIT))
    subscription, _ = await subscribe(org, thresholds)
    async with org.database.mutation(org.authority()) as tx:
        # So that it is to be raised again.
        await tx.execute(
            "DELETE FROM alert_deliveries WHERE organization_id = $1", org.organization_id
        )
        await alerts.send_test(tx, subscription.id)
    async with org.database.mutation(org.authority()) as tx:
        await tx.execute(
            """
            UPDATE alert_deliveries
               SET state = 'failed', dedup_key = 'earlier'
             WHERE organization_id = $1
            """,
            org.organization_id,
        )
        await alerts.send_test(tx, subscription.id)
    return subscription, (await outbox(org))[-1]


async def _verified(org: OrganizationFixture) -> None:
    """Yesterday was verified, and had no costs."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    mark = DayMark(day=yesterday, excess_pico=PicoUsd(0), unknown_pico=PicoUsd(0), costs_digest="")
    async with org.database.transaction() as tx:
        await verified_days.remember(tx, org.organization_id, [mark])
        await tx.execute(
            """
            INSERT INTO ledger_verifications (organization_id, begun_at, complete_until)
            VALUES ($1, now(), $2)
            """,
            org.organization_id,
            yesterday,
        )


async def _organization(org: OrganizationFixture) -> Organization:
    async with org.database.transaction() as tx:
        found = await organizations.get(tx, org.organization_id)
    assert found is not None
    return found


async def _checked(org: OrganizationFixture) -> GrantedCheck:
    async with org.database.mutation(org.authority()) as tx:
        return await organization_service.grant_check(tx, "identity")


async def _granted(org: OrganizationFixture) -> Grant:
    async with org.database.mutation(org.authority()) as tx:
        return await ledger.grant(
            tx,
            grant_id=GrantId(time_ordered_uuid()),
            kind=GrantKind.PROMOTIONAL,
            amount=PicoUsd(HELD),
            reason="a test",
        )


async def _capped(org: OrganizationFixture, project: Project, key: HeldProjectKey) -> list[CapUse]:
    scopes = {
        CapScope.ORGANIZATION: org.organization_id,
        CapScope.PROJECT: project.id,
        CapScope.KEY: key.key.id,
    }
    caps: list[CapUse] = []
    for scope, scope_id in scopes.items():
        for period in Period:
            place = CapId(scope=scope, scope_id=scope_id, period=period)
            async with org.database.mutation(org.authority()) as tx:
                caps.append(
                    await ledger.set_cap(
                        tx, place, limit_pico_usd=PicoUsd(CREDIT), alert_percent=80
                    )
                )
    return caps


async def _spent(ledger: DirectLedger) -> tuple[Hold, Hold, UnsettledHold]:
    """An open hold, a settled one, and one that is unsettled."""
    open_hold, settled_hold, lost = [await ledger.hold(HELD) for _ in range(3)]
    await ledger.post(settled_hold, SPENT)
    database = ledger.org.database
    open_lost = OpenHold(
        organization_id=lost.organization_id,
        admitted_day=lost.admitted_day,
        reservation_id=lost.reservation_id,
        held_pico_usd=lost.amount_pico_usd,
    )
    assert await marking.mark(database, [open_lost])
    async with database.transaction() as tx:
        (unsettled,) = await operations.page_of_unsettled(tx, lost.organization_id, limit=2)
    return open_hold, settled_hold, unsettled


async def _requested(
    org: OrganizationFixture, project: Project, key: HeldProjectKey
) -> tuple[RequestRecord, RequestRecord]:
    for table in DailyTable:
        await partitions.ensure(org.database, table)
    customer = Customer(org.organization_id, project.id, key.key.id)
    labelled = customer.record(label="a feature")
    records = labelled, customer.record(status=502, error_code="backend_error")
    assert await activity.insert(org.database, records) == len(records)
    return records


async def _examined(
    org: OrganizationFixture, request: RequestRecord, policy: Policy
) -> EvaluationRecord:
    record = EvaluationRecord(
        organization_id=org.organization_id,
        request_id=request.request_id,
        project_id=request.project_id,
        api_key_id=request.api_key_id,
        direction=Direction.REQUEST,
        mode=Mode.ENFORCING,
        evaluated_at=datetime.now(UTC),
        judging_ms=1.5,
        decisions=(
            PolicyDecision(
                policy_id=policy.id,
                version=1,
                mode=Mode.ENFORCING,
                outcome=EvaluationOutcome.MATCH,
                threshold=5_000,
                score=9_000,
            ),
        ),
    )
    assert await decisions.insert(org.database, [record]) == 1
    return record


async def _claimed(org: OrganizationFixture) -> Claim:
    claim = Claim(
        idempotency_key="a key",
        fingerprint=b"f" * 32,
        resource_id=uuid4(),
        creator_id=AdminKeyId(uuid4()),
        sealed=None,
    )
    async with org.database.mutation(org.authority()) as tx:
        assert await idempotency.claim(tx, claim, record_days=1) is None
        tx.unchanged()
    return claim


async def _last_audit(org: OrganizationFixture) -> AuditId:
    async with org.database.transaction() as tx:
        (entry,) = await audit.page(tx, org.organization_id, after=None, limit=1)
    return entry.id
