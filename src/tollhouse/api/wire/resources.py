"""Conversion of domain objects into wire types."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from tollhouse.base.clock import unix_seconds
from tollhouse.base.errors import InvalidRequest
from tollhouse.base.ids import ProjectId, policy_id_text, policy_version_id_text
from tollhouse.base.permissions import ADMIN_PERMISSIONS
from tollhouse.contract import audit as audit_wire
from tollhouse.contract import keys as keys_wire
from tollhouse.contract import policies as policies_wire
from tollhouse.contract import projects as projects_wire
from tollhouse.contract import rate_limits as limits_wire
from tollhouse.contract.listing import ListPage
from tollhouse.keys import rules
from tollhouse.keys.types import AdminKey, ProjectKey
from tollhouse.limits.types import LimitScope, RateLimit
from tollhouse.policies.types import EffectivePolicy, Policy, PolicyVersion
from tollhouse.projects.types import Project
from tollhouse.storage.audit import AuditEntry
from tollhouse.storage.changes import Change, DigestedValue, Value


class _Shown(Protocol):
    @property
    def id(self) -> str: ...


_ACTORS: Final[dict[str, Literal["admin_api_key", "operator", "person"]]] = {
    "admin_api_key": "admin_api_key",
    "operator": "operator",
    "person": "person",
}
T = TypeVar("T")
ShownT = TypeVar("ShownT", bound=_Shown)
PageT = TypeVar("PageT", bound=ListPage)


def project_key(
    key: ProjectKey, *, now: datetime, value: str | None = None
) -> keys_wire.ProjectKey:
    """Convert a project key into the form of `/v1`."""
    return keys_wire.ProjectKey(
        id=str(key.id),
        name=key.name,
        redacted_value=key.redacted_value,
        value=UNSET if value is None else value,
        created_at=unix_seconds(key.created_at),
        last_used_at=_seconds(key.last_used_at),
        expires_at=_seconds(key.expires_at),
        owner=keys_wire.ProjectKeyOwner(id=str(key.project_id), name=key.project_name),
        status=rules.status(key, now=now).value,
        permissions=list(key.permissions),
    )


def managed_project_key(
    key: ProjectKey, *, now: datetime, value: str | None = None
) -> keys_wire.ManagedProjectKey:
    """Convert a project key into the form of `/manage/v1`, with its allowed models."""
    models = None if key.allowed_models is None else list(key.allowed_models)
    shown = project_key(key, now=now, value=value)
    return keys_wire.ManagedProjectKey(
        **asdict(shown),
        allowed_models=models,
        previous_value_expires_at=_seconds(rules.previous_value_expires_at(key, now=now)),
    )


def created_admin_key(key: AdminKey, *, value: str | None) -> keys_wire.CreatedAdminKey:
    """Convert a new Admin key, with its value unless `value` is None."""
    shown = asdict(admin_key(key))
    return keys_wire.CreatedAdminKey(**shown, value=UNSET if value is None else value)


def admin_key(key: AdminKey) -> keys_wire.AdminKey:
    """Convert an Admin key. One without a list of permissions has all permissions."""
    held = ADMIN_PERMISSIONS if key.permissions is None else key.permissions
    return keys_wire.AdminKey(
        id=str(key.id),
        name=key.name,
        redacted_value=key.redacted_value,
        created_at=unix_seconds(key.created_at),
        last_used_at=_seconds(key.last_used_at),
        expires_at=_seconds(key.expires_at),
        owner=keys_wire.AdminKeyOwner(id=str(key.organization_id)),
        permissions=sorted(held),
    )


def project(project_: Project) -> projects_wire.Project:
    """Convert a project, with OpenAI's field names."""
    models = project_.allowed_models
    return projects_wire.Project(
        id=str(project_.id),
        name=project_.name,
        created_at=unix_seconds(project_.created_at),
        archived_at=_seconds(project_.archived_at),
        status="active" if project_.archived_at is None else "archived",
        allowed_models=None if models is None else list(models),
    )


def policy(policy_: Policy) -> policies_wire.Policy:
    """Convert a policy, with its draft and its current version if there is one."""
    draft, published = policy_.draft, policy_.published
    return policies_wire.Policy(
        id=policy_id_text(policy_.id),
        name=policy_.name,
        description=policy_.description,
        state=policy_.state.value,
        revision=policy_.revision,
        has_unpublished_changes=policy_.has_unpublished_changes,
        created_at=unix_seconds(policy_.created_at),
        updated_at=unix_seconds(policy_.updated_at),
        draft=policies_wire.PolicyDraft(
            rule=draft.rule,
            direction=draft.direction.value,
            mode=draft.mode.value,
            scope=draft.scope.value,
            project_ids=_texts(draft.project_ids),
            match_threshold_basis_points=draft.match_threshold_basis_points,
            base_version=policy_.base_version,
        ),
        current_version=policy_.current_version,
        published=(
            None
            if published is None
            else policy_version(published, current_version=published.number)
        ),
    )


def policy_version(
    version: PolicyVersion, *, current_version: int | None
) -> policies_wire.PublishedPolicy:
    """Convert a published version. Its threshold is the one in force, never null."""
    content = version.content
    return policies_wire.PublishedPolicy(
        id=policy_version_id_text(version.policy_id, version.number),
        version=version.number,
        rule=content.rule,
        direction=content.direction.value,
        mode=content.mode.value,
        scope=content.scope.value,
        project_ids=_texts(content.project_ids),
        match_threshold_basis_points=version.threshold_in_force_basis_points,
        published_at=unix_seconds(version.published_at),
        current=version.number == current_version,
    )


def managed_policy(policy_: Policy) -> policies_wire.ManagedPolicy:
    """Convert a policy into the form of `/manage/v1`, which has `ends_answer_early`."""
    shown, published = policy(policy_), policy_.published
    draft = policies_wire.ManagedPolicyDraft(
        **asdict(shown.draft), ends_answer_early=policy_.draft.ends_answer_early
    )
    version = (
        None
        if published is None
        else managed_policy_version(published, current_version=published.number)
    )
    fields: dict[str, Any] = asdict(shown) | {"draft": draft, "published": version}
    return policies_wire.ManagedPolicy(**fields)


def managed_policy_version(
    version: PolicyVersion, *, current_version: int | None
) -> policies_wire.ManagedPublishedPolicy:
    """Convert a published version into the form of `/manage/v1`."""
    shown = policy_version(version, current_version=current_version)
    return policies_wire.ManagedPublishedPolicy(
        **asdict(shown), ends_answer_early=version.content.ends_answer_early
    )


def effective_policy(effective: EffectivePolicy) -> policies_wire.EffectivePolicy:
    """Convert a policy that applies to a project."""
    return policies_wire.EffectivePolicy(
        id=policy_id_text(effective.id),
        name=effective.name,
        version=effective.version,
        direction=effective.direction.value,
        mode=effective.mode.value,
        scope=effective.scope.value,
    )


def audit_entry(entry: AuditEntry) -> audit_wire.AuditEntry:
    """Convert an audit entry, with digests in hexadecimal."""
    return audit_wire.AuditEntry(
        id=str(entry.id),
        occurred_at=unix_seconds(entry.occurred_at),
        actor=actor(entry.actor.type, entry.actor.id, entry.actor.name),
        action=entry.action,
        resource=audit_wire.AuditResource(type=entry.resource_type, id=entry.resource_id),
        changes=[audit_change(change) for change in entry.changes],
        digest_before=None if entry.digest_before is None else entry.digest_before.hex(),
        digest_after=None if entry.digest_after is None else entry.digest_after.hex(),
        request_id=None if entry.request_id is None else str(entry.request_id),
    )


def audit_change(change: Change) -> audit_wire.AuditChange:
    """Convert the change of one field."""
    return audit_wire.AuditChange(
        field=change.field, before=_audit_value(change.before), after=_audit_value(change.after)
    )


def actor(type_: str, id_: str | None, name: str | None = None) -> audit_wire.AuditActor:
    """Return the author of a change."""
    return audit_wire.AuditActor(type=_ACTORS[type_], id=id_, name=name)


def future_instant(seconds: int | UnsetType | None, *, now: datetime) -> datetime | None:
    """Convert a timestamp that must be in the future; return None if it is absent or null."""
    if seconds is None or isinstance(seconds, UnsetType):
        return None
    at = datetime.fromtimestamp(seconds, UTC)
    if at <= now:
        message = "Invalid 'expires_at': expected an instant in the future."
        raise InvalidRequest("invalid_value", message, param="expires_at")
    return at


def page(
    make: Callable[..., PageT], found: Sequence[T], limit: int, show: Callable[[T], ShownT]
) -> PageT:
    """Return a page of `limit` items. A further item in `found` means that there are more."""
    data = [show(item) for item in found[:limit]]
    return make(
        data=data,
        has_more=len(found) > limit,
        first_id=data[0].id if data else None,
        last_id=data[-1].id if data else None,
    )


def _texts(project_ids: Sequence[ProjectId]) -> list[str]:
    return [str(project_id) for project_id in project_ids]


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else unix_seconds(at)


def _audit_value(value: Value) -> audit_wire.AuditValue:
    if isinstance(value, DigestedValue):
        return audit_wire.DigestedValue(sha256=value.sha256, length=value.length)
    return value


def rate_limit(limit: RateLimit) -> limits_wire.RateLimit:
    """Convert a rate limit."""
    return limits_wire.RateLimit(
        id=limit.place.text,
        scope=limit.scope.value,
        project_id=str(limit.scope_id) if limit.scope is LimitScope.PROJECT else None,
        api_key_id=str(limit.scope_id) if limit.scope is LimitScope.KEY else None,
        owner=limit.owner.value,
        requests_per_minute=limit.traffic.requests_per_minute,
        tokens_per_minute=limit.traffic.tokens_per_minute,
        concurrent_requests=limit.traffic.concurrent_requests,
    )
