"""Conversion of policies into the form that is evaluated: in force, or on trial."""

from dataclasses import replace
from typing import Final, Literal
from uuid import UUID

from tollhouse.base.ids import PolicyId
from tollhouse.base.policies import Direction, Mode
from tollhouse.policies.types import DRAFT_VERSION, AppliedPolicy, Policy, PolicyVersion
from tollhouse.storage.database import Row

Side = Literal["draft", "published"]

NOT_SAVED: Final = PolicyId(UUID(int=0))
"""The ID of a policy that has only a rule so far. A trial records nothing under it."""


def in_force(version: PolicyVersion) -> AppliedPolicy:
    """Return a published version in the form that is evaluated."""
    content = version.content
    return AppliedPolicy(
        id=version.policy_id,
        version=version.number,
        rule=content.rule,
        direction=content.direction,
        mode=content.mode,
        match_threshold_basis_points=version.threshold_in_force_basis_points,
        ends_answer_early=content.ends_answer_early,
    )


def on_trial(
    policy: Policy, *, default_threshold_basis_points: int, rule: str | None = None
) -> dict[Side, AppliedPolicy]:
    """Return the draft, and the published version if there is one, for a trial.

    `rule` replaces the draft's rule. Both monitor, because a trial refuses nothing.
    """
    draft = policy.draft
    threshold = draft.match_threshold_basis_points
    sides: dict[Side, AppliedPolicy] = {
        "draft": AppliedPolicy(
            id=policy.id,
            version=DRAFT_VERSION,
            rule=draft.rule if rule is None else rule,
            direction=draft.direction,
            mode=Mode.MONITORING,
            match_threshold_basis_points=(
                default_threshold_basis_points if threshold is None else threshold
            ),
        )
    }
    if policy.published is not None:
        sides["published"] = replace(in_force(policy.published), mode=Mode.MONITORING)
    return sides


def rule_on_trial(
    rule: str, *, direction: Direction, threshold_basis_points: int
) -> dict[Side, AppliedPolicy]:
    """Return a rule that is not part of a policy yet, for a trial."""
    draft = AppliedPolicy(
        id=NOT_SAVED,
        version=DRAFT_VERSION,
        rule=rule,
        direction=direction,
        mode=Mode.MONITORING,
        match_threshold_basis_points=threshold_basis_points,
    )
    return {"draft": draft}


def of_row(row: Row) -> AppliedPolicy:
    """Convert a row of `policy_versions` that has all columns for an evaluation."""
    return AppliedPolicy(
        id=PolicyId(row["policy_id"]),
        version=row["version"],
        rule=row["rule"],
        direction=Direction(row["direction"]),
        mode=Mode(row["mode"]),
        match_threshold_basis_points=row["threshold_in_force_basis_points"],
        ends_answer_early=row["ends_answer_early"],
    )
