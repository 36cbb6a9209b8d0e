"""Bodies about policies on trial: a rule that is read, a text that is judged. Nothing is kept."""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import PolicyRule, TriedRule, TriedText
from tollhouse.contract.origins import extension

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
    """Without a rule the draft's is read. It need not be a question yet, which is then remarked."""

    mark: ClassVar[Meta] = extension("OQ-178")

    rule: TriedRule | UnsetType = UNSET


class PolicyRemark(Struct, frozen=True, kw_only=True):
    """What makes a rule hard to judge, and what to write instead."""

    mark: ClassVar[Meta] = extension("OQ-178")

    weakness: Weakness
    advice: str


class PolicyRemarkList(Struct, frozen=True, kw_only=True):
    """All that can be said of a rule by reading it, in the order in which one would mend it."""

    mark: ClassVar[Meta] = extension("OQ-178")

    object: Literal["list"] = "list"
    data: list[PolicyRemark]


class TryPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to judge. A rule stands in the place of the draft's; what is published is asked too."""

    mark: ClassVar[Meta] = extension("OQ-178")

    text: TriedText
    rule: PolicyRule | UnsetType = UNSET


class PolicyVerdict(Struct, frozen=True, kw_only=True):
    """What the judge says of a text; `lowest` and `highest` enclose the score."""

    mark: ClassVar[Meta] = extension("OQ-178")

    of: Literal["draft", "published"]
    outcome: Literal["match", "no_match", "failed"]
    score_basis_points: int | None
    lowest_basis_points: int | None
    highest_basis_points: int | None
    coverage_basis_points: int | None
    threshold_basis_points: int
    reason: str | None


class PolicyVerdictList(Struct, frozen=True, kw_only=True):
    """Of the draft, and of what is published if anything is."""

    mark: ClassVar[Meta] = extension("OQ-178")

    object: Literal["list"] = "list"
    data: list[PolicyVerdict]
