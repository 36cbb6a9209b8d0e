"""The state machine of a policy: each function returns the policy after one change.

Every function but `create` first checks the revision, and every change increments it.
"""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from msgspec import UNSET

from tollhouse.base.ids import OrganizationId, PolicyId
from tollhouse.base.policies import Direction
from tollhouse.policies.errors import (
    NoAnswerToEnd,
    PolicyStateConflict,
    PolicyVersionNotFound,
    RevisionsExhausted,
    StaleRevision,
    VersionIsCurrent,
)
from tollhouse.policies.types import Policy, PolicyContent, PolicyEdit, PolicyState, PolicyVersion

REVISION_MAX = 2_147_483_647
_EARLY = "ends_answer_early"
_CONTENT_FIELDS = frozenset(field.name for field in fields(PolicyContent))


def create(
    *,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    name: str,
    description: str,
    content: PolicyContent,
    now: datetime,
) -> Policy:
    """Return a new policy with a draft and no published version."""
    _require_answer_to_end(content, param=_EARLY)
    return Policy(
        organization_id=organization_id,
        id=policy_id,
        name=name,
        description=description,
        state=PolicyState.DRAFT,
        revision=1,
        draft=_with_each_project_once(content),
        base_version=0,
        published=None,
        created_at=now,
        updated_at=now,
    )


def edit(policy: Policy, *, revision: int, changes: PolicyEdit, now: datetime) -> Policy:
    """Return the policy with an edited draft, or the same policy if nothing differs.

    The published version does not change.
    """
    _check_revision(policy, revision)
    given = _given(changes)
    content = {name: value for name, value in given.items() if name in _CONTENT_FIELDS}
    own = {name: value for name, value in given.items() if name not in _CONTENT_FIELDS}
    draft = _with_each_project_once(replace(policy.draft, **content))
    _require_answer_to_end(draft, param=_EARLY if _EARLY in given else "direction")
    edited = replace(policy, draft=draft, **own)
    return policy if edited == policy else _changed(edited, now)


def publish(
    policy: Policy, *, revision: int, default_threshold_basis_points: int, now: datetime
) -> Policy:
    """Return the policy with its draft published as the next version; if paused, it stays so."""
    _check_revision(policy, revision)
    threshold = policy.draft.match_threshold_basis_points
    in_force = default_threshold_basis_points if threshold is None else threshold
    published = _publication(policy, policy.draft, in_force, now)
    return _changed(replace(published, base_version=published.current_version or 0), now)


def pause(policy: Policy, *, revision: int, now: datetime) -> Policy:
    """Return the policy paused. Raises `PolicyStateConflict` if it is not in effect."""
    _check_revision(policy, revision)
    if not policy.is_in_effect:
        raise PolicyStateConflict(state=policy.state)
    return _changed(replace(policy, state=PolicyState.PAUSED), now)


def check_deletable(policy: Policy) -> None:
    """Raise `PolicyStateConflict` if the policy was published: its versions have to stay."""
    if policy.state is not PolicyState.DRAFT:
        raise PolicyStateConflict(state=policy.state)


def resume(policy: Policy, *, revision: int, now: datetime) -> Policy:
    """Return a paused policy in the mode of its current version."""
    _check_revision(policy, revision)
    if policy.state is not PolicyState.PAUSED:
        raise PolicyStateConflict(state=policy.state)
    assert policy.published is not None, "only a published policy can be paused"
    state = PolicyState(policy.published.content.mode)
    return _changed(replace(policy, state=state), now)


def roll_back(
    policy: Policy, version: PolicyVersion | None, *, revision: int, now: datetime
) -> Policy:
    """Return the policy with an older version, and its threshold, published as the next one.

    The draft does not change.
    """
    _check_revision(policy, revision)
    if version is None:
        raise PolicyVersionNotFound
    if version.number == policy.current_version:
        raise VersionIsCurrent
    in_force = version.threshold_in_force_basis_points
    return _changed(_publication(policy, version.content, in_force, now), now)


def _check_revision(policy: Policy, revision: int) -> None:
    if revision != policy.revision:
        raise StaleRevision(sent=revision, latest=policy.revision)


def _given(changes: PolicyEdit) -> dict[str, Any]:
    values = {field.name: getattr(changes, field.name) for field in fields(changes)}
    return {name: value for name, value in values.items() if value is not UNSET}


def _require_answer_to_end(content: PolicyContent, *, param: str) -> None:
    if content.ends_answer_early and content.direction is Direction.REQUEST:
        raise NoAnswerToEnd(param=param)


def _with_each_project_once(content: PolicyContent) -> PolicyContent:
    return replace(content, project_ids=tuple(dict.fromkeys(content.project_ids)))


def _publication(
    policy: Policy, content: PolicyContent, threshold_basis_points: int, now: datetime
) -> Policy:
    version = PolicyVersion(
        organization_id=policy.organization_id,
        policy_id=policy.id,
        number=(policy.current_version or 0) + 1,
        content=content,
        threshold_in_force_basis_points=threshold_basis_points,
        published_at=now,
    )
    is_paused = policy.state is PolicyState.PAUSED
    state = PolicyState.PAUSED if is_paused else PolicyState(content.mode)
    return replace(policy, state=state, published=version)


def _changed(policy: Policy, now: datetime) -> Policy:
    if policy.revision == REVISION_MAX:
        raise RevisionsExhausted
    return replace(policy, revision=policy.revision + 1, updated_at=now)
