"""What each parameter of a scoped function can be given of a tenant's.

Records differ from what is stored, so that whatever writes them changes a row.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import NoneType
from typing import Any, Final
from uuid import UUID

from tests.tenancy.tenant import Tenant
from tollhouse.activity import types as activity
from tollhouse.alerts.types import AlertSubscription, DeliveryAttempt, DeliveryState
from tollhouse.base.ids import (
    AdminKeyId,
    AlertDeliveryId,
    AlertSubscriptionId,
    AuditId,
    GrantId,
    InstanceId,
    OrganizationId,
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    ReservationId,
)
from tollhouse.base.money import PicoUsd
from tollhouse.base.quotas import Quota
from tollhouse.base.traffic import TrafficLimits
from tollhouse.decisions import types as decisions
from tollhouse.keys.types import AdminKey, KeyKind, NewSecret, ProjectKey
from tollhouse.ledger.open_holds import OpenHold
from tollhouse.ledger.types import (
    Cap,
    CapId,
    Charge,
    Grant,
    Hold,
    HoldDecision,
    PastUsage,
    Resolution,
    ResolutionKind,
    UnsettledHold,
)
from tollhouse.ledger.verified_days import NOTHING_VERIFIED, DayMark, VerifiedDays
from tollhouse.limits.types import LimitId, RateLimit
from tollhouse.organizations.types import GrantedCheck, Organization, OrganizationStatus
from tollhouse.policies import sets
from tollhouse.policies.types import DRAFT_VERSION, Policy, PolicyState, PolicyVersion
from tollhouse.projects import store as projects
from tollhouse.projects.types import Project
from tollhouse.reports import types as reports
from tollhouse.storage.idempotency import Claim

CALLER: Final = object()
"""Stands for the organization in whose name a function is called."""
LAST_ID = UUID(int=2**128 - 1)
DAY_SECONDS = 86_400
MANY = 100
SPENT = Charge(input_tokens=1, input_pico_usd=PicoUsd(1))


def values_by_name(tenant: Tenant) -> dict[str, list[Any]]:
    """Return the values of parameters that any type fits, or of one function's own."""
    now = datetime.now(UTC)
    today = tenant.open_hold.admitted_day
    return {
        "limit": [MANY],
        "count_max": [MANY],
        "rows_max": [MANY],
        "record_days": [1],
        "number": [1],
        "reason": ["a test"],
        "action": ["test.tried"],
        "resource": [("test", tenant.project.id)],
        "day": [today],
        "today": [today],
        "now": [now],
        "at": [now],
        "expired_before": [now - timedelta(days=1)],
        "previous_until": [now],
        "retry_after": [timedelta(0)],
        "overlap": [timedelta(0)],
        "sealed": [b"sealed"],
        "ledger.lost.charged(request_ids)": [[RequestId(tenant.settled_hold.reservation_id)]],
        "ledger.lost.charged(since)": [now],
        "ledger.lost.last_admission(since)": [now],
        "limits.store.save_limit(limit)": [_limit(tenant)],
        "decisions.selecting.selecting_requests(covered)": [()],
        "decisions.store.requests_of_policy(since)": [
            decisions.DecisionCursor(day=date.min, request_id=UUID(int=0), direction="")
        ],
        "policies.store.page_of_versions(before)": [None],
        "ledger.operations.record_decision(before)": [None],
        "storage.audit.record(before)": [None],
        "storage.audit.record(after)": [{"name": "after"}],
        "storage.audit_chain.verify(stored)": [None],
        "storage.quotas.require_room(limit)": [1],
        "storage.quotas.require_room(count)": [projects.count_active],
        "policies.sets.require_room(objection)": [sets.at_most(sets.no_check, 1)],
        "keys.lookup.get_person(person_id)": [UUID(int=7)],
        "keys.lookup.get_person(permissions)": [None, frozenset({"projects:read"})],
        "keys.directory._touch_project_keys(marks)": [{(CALLER, tenant.project_key.key.id): now}],
        "keys.directory._touch_admin_keys(marks)": [{(CALLER, tenant.admin_key.key.id): now}],
    }


def values_by_type(tenant: Tenant) -> dict[Any, list[Any]]:
    """Return every other value, by the type of its parameter."""
    return {
        NoneType: [None],
        bool: [False, True],
        PicoUsd: [PicoUsd(5)],
        **_identifiers(tenant),
        **_records(tenant),
        **_money(tenant),
        **_questions(tenant),
    }


def _identifiers(tenant: Tenant) -> dict[Any, list[Any]]:
    return {
        OrganizationId: [CALLER],
        ProjectId: [tenant.project.id],
        ProjectKeyId: [tenant.project_key.key.id],
        AdminKeyId: [tenant.admin_key.key.id],
        PolicyId: [tenant.published.id, tenant.paused.id],
        GrantId: [tenant.grant.id],
        AuditId: [tenant.audit_id],
        AlertSubscriptionId: [tenant.subscription.id],
        AlertDeliveryId: [tenant.delivery.id],
        RequestId: [tenant.request.request_id],
        ReservationId: [hold.reservation_id for hold in _holds(tenant)],
        InstanceId: [tenant.unsettled.instance_id],
        KeyKind: list(KeyKind),
        Quota: [Quota.PROJECTS],
    }


def _records(tenant: Tenant) -> dict[Any, list[Any]]:
    now = datetime.now(UTC)
    changed = replace(
        tenant.published, name="changed", revision=9, state=PolicyState.PAUSED, updated_at=now
    )
    draft = replace(
        tenant.published, state=PolicyState.DRAFT, base_version=DRAFT_VERSION, published=None
    )
    return {
        Organization: [replace(tenant.organization, status=OrganizationStatus.SUSPENDED)],
        GrantedCheck: [tenant.check],
        Project: [replace(tenant.project, name="changed")],
        ProjectKey: [replace(tenant.project_key.key, suspended_at=now)],
        AdminKey: [replace(tenant.admin_key.key, revoked_at=now)],
        NewSecret: [NewSecret(value="", redacted_value="", digest=b"d" * 32)],
        Policy: [tenant.published, changed, draft],
        PolicyVersion: [tenant.published.published],
        RateLimit: [_limit(tenant)],
        LimitId: [tenant.limit.place],
        Claim: [tenant.claim],
        AlertSubscription: [replace(tenant.subscription, name="changed")],
        DeliveryAttempt: [DeliveryAttempt(status=204)],
        DeliveryState: [DeliveryState.DELIVERED],
        activity.RequestRecord: [tenant.request],
        decisions.EvaluationRecord: [tenant.record],
    }


def _money(tenant: Tenant) -> dict[Any, list[Any]]:
    holds = _holds(tenant)
    caps = [replace(use.cap, limit_pico_usd=PicoUsd(7)) for use in tenant.caps]
    return {
        Hold: [tenant.open_hold],
        UnsettledHold: [tenant.unsettled],
        OpenHold: [
            OpenHold(
                organization_id=hold.organization_id,
                admitted_day=hold.admitted_day,
                reservation_id=hold.reservation_id,
                held_pico_usd=hold.amount_pico_usd,
            )
            for hold in holds
        ],
        Resolution: [
            Resolution(
                organization_id=hold.organization_id,
                reservation_id=hold.reservation_id,
                admitted_day=hold.admitted_day,
                kind=ResolutionKind.POST,
                charge=SPENT,
            )
            for hold in holds
        ],
        Charge: [SPENT],
        date: [date.max],
        DayMark: [
            DayMark(
                day=hold.admitted_day,
                excess_pico=PicoUsd(1),
                unknown_pico=PicoUsd(1),
                costs_digest="",
            )
            for hold in holds
        ][:1],
        VerifiedDays: [NOTHING_VERIFIED],
        HoldDecision: [HoldDecision.SETTLE],
        Grant: [tenant.grant],
        Cap: caps,
        CapId: [cap.place for cap in caps],
        PastUsage: [
            PastUsage(
                project_id=tenant.project.id,
                api_key_id=tenant.project_key.key.id,
                model="a model",
                day=tenant.open_hold.admitted_day,
                charge=SPENT,
            )
        ],
    }


def _questions(tenant: Tenant) -> dict[Any, list[Any]]:
    """Return questions about the days around today, with each filter and without."""
    today = tenant.open_hold.admitted_day
    begin = _midnight(today - timedelta(days=1))
    end = _midnight(today + timedelta(days=2))
    tomorrow = today + timedelta(days=1)
    return {
        activity.RecordFilter: [
            activity.RecordFilter(),
            activity.RecordFilter(statuses=activity.StatusRange(lowest=400, highest=599)),
            activity.RecordFilter(api_key_id=tenant.project_key.key.id),
            activity.RecordFilter(error_code="any"),
            activity.RecordFilter(request_ids=(tenant.request.request_id,)),
        ],
        activity.RecordCursor: [activity.RecordCursor(request_id=LAST_ID, day=tomorrow)],
        activity.HourRange: [activity.HourRange(start=begin, end=end)],
        activity.RecordGrouping: list(activity.RecordGrouping),
        decisions.DecisionCursor: [
            decisions.DecisionCursor(day=tomorrow, request_id=LAST_ID, direction="response")
        ],
        decisions.DayRange: [decisions.DayRange(first=today - timedelta(days=1), end=tomorrow)],
        reports.ReportSpan: [reports.ReportSpan(start=begin, end=end)],
        reports.CostQuery: [
            reports.CostQuery(
                subject=reports.CostSubject.COSTS,
                start=begin,
                width=reports.Width.DAY,
                only=only,
                grouping=frozenset(),
            )
            for only in (
                reports.CostFilter(),
                reports.CostFilter(project_ids=frozenset({tenant.project.id})),
                reports.CostFilter(api_key_ids=frozenset({tenant.project_key.key.id})),
            )
        ],
    }


def _holds(tenant: Tenant) -> list[Hold | UnsettledHold]:
    return [tenant.open_hold, tenant.settled_hold, tenant.unsettled]


def _limit(tenant: Tenant) -> RateLimit:
    return replace(tenant.limit, traffic=TrafficLimits(requests_per_minute=9))


def _midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
