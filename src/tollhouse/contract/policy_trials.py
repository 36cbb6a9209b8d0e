"""The wire types of linting and testing policies. Nothing of it is stored."""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import PolicyRule, ThresholdBasisPoints, TriedRule, TriedText
from tollhouse.contract.origins import extension
from tollhouse.contract.policies import ManagedPolicy, PolicyDirection

Weakness = Literal[
    "not_a_question",
    "open_question",
    "several_questions",
    "double_negation",
    "absence",
    "vague",
    "too_long",
]


class LintPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rule to lint, by default the draft's. It need not be a question."""

    mark: ClassVar[Meta] = extension("OQ-178")

    rule: TriedRule | UnsetType = UNSET
    """The rule to read instead of the draft's."""


class LintUnsavedRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule that is not part of a policy yet. It need not be a question."""

    mark: ClassVar[Meta] = extension("OQ-210")

    rule: TriedRule


class PolicyRemark(Struct, frozen=True, kw_only=True):
    """One weakness that makes a rule hard to judge, and advice what to write instead."""

    mark: ClassVar[Meta] = extension("OQ-178")

    weakness: Weakness
    """What makes the rule hard to judge."""
    advice: str
    """What to write instead."""


class PolicyRemarkList(Struct, frozen=True, kw_only=True):
    """The remarks on a rule, in the order in which to fix them."""

    mark: ClassVar[Meta] = extension("OQ-178")

    object: Literal["list"] = "list"
    data: list[PolicyRemark]


class TryPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text to judge by the draft and by the published version. `rule` replaces the draft's."""

    mark: ClassVar[Meta] = extension("OQ-178")

    text: TriedText
    """The text to judge."""
    rule: PolicyRule | UnsetType = UNSET
    """The rule to judge by instead of the draft's."""


class TryUnsavedRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text to judge by a rule that is not part of a policy yet.

    A null threshold is the default.
    """

    mark: ClassVar[Meta] = extension("OQ-210")

    text: TriedText
    """The text to judge."""
    rule: PolicyRule
    direction: PolicyDirection = "both"
    """The content for which the rule is meant."""
    match_threshold_basis_points: ThresholdBasisPoints | None = None
    """The score from which the text matches, in hundredths of a percent; null for the default."""


class PolicyVerdict(Struct, frozen=True, kw_only=True):
    """The verdict of the judge on a text. The score lies between `lowest` and `highest`."""

    mark: ClassVar[Meta] = extension("OQ-178")

    of: Literal["draft", "published"]
    """Whether the draft or the published version was tried."""
    outcome: Literal["match", "no_match", "failed"]
    """Whether the text matched, or `failed` if the judge gave no verdict."""
    score_basis_points: int | None
    lowest_basis_points: int | None
    highest_basis_points: int | None
    coverage_basis_points: int | None
    threshold_basis_points: int
    """The score from which the text matches, in hundredths of a percent."""
    reason: str | None
    """Why the judge gave no verdict, or null."""


class PolicyVerdictList(Struct, frozen=True, kw_only=True):
    """The verdicts of the draft and of the published version, if there is one."""

    mark: ClassVar[Meta] = extension("OQ-178")

    object: Literal["list"] = "list"
    data: list[PolicyVerdict]


class PolicyInForce(ManagedPolicy, frozen=True, kw_only=True):
    """A policy that was published or resumed, and what the judge said of it before."""

    mark: ClassVar[Meta] = extension("OQ-246")

    preflight: PolicyVerdict | None
    """The verdict on the harmless text `Hello.`, or null if the gateway has no judge."""
