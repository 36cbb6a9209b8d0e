"""The controls of reasoning in a chat request, and the check that they agree (OQ-35)."""

from typing import ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import Effort, OutputBound
from tollhouse.contract.field_checks import ABSENT, combination
from tollhouse.contract.origins import GIVEN


class Reasoning(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much a model reasons. Send `effort` or `max_tokens` (a budget), not both."""

    mark: ClassVar[Meta] = GIVEN

    enabled: bool | UnsetType | None = UNSET
    """Whether the model reasons before it answers."""
    effort: Effort | UnsetType | None = UNSET
    """How much the model reasons."""
    max_tokens: OutputBound | UnsetType | None = UNSET
    """The largest number of tokens of reasoning."""
    exclude: bool | UnsetType | None = UNSET
    """Whether the answer leaves the reasoning out."""


class ReasoningControls(Struct, frozen=True, kw_only=True):
    """The fields of a chat request that control reasoning."""

    reasoning: Reasoning
    reasoning_effort: Effort | UnsetType | None
    thinking: bool | UnsetType | None
    include_reasoning: bool | UnsetType | None


def check_reasoning(controls: ReasoningControls) -> None:
    """Raise `InvalidRequest` if controls contradict each other. They may repeat each other."""
    _check_budget(controls)
    efforts = {controls.reasoning.effort, controls.reasoning_effort} - {UNSET, None}
    if len(efforts) > 1:
        raise combination("reasoning.effort", "it contradicts 'reasoning_effort'")
    _check_agreement(_switches(controls))
    _check_agreement(_visibility(controls))


def _check_budget(controls: ReasoningControls) -> None:
    efforts = (controls.reasoning.effort, controls.reasoning_effort)
    if controls.reasoning.max_tokens not in ABSENT and any(each not in ABSENT for each in efforts):
        raise combination("reasoning.max_tokens", "send it or an effort, not both")


def _check_agreement(controls: dict[str, bool | UnsetType | None]) -> None:
    on = [name for name, value in controls.items() if value is True]
    off = [name for name, value in controls.items() if value is False]
    if on and off:
        raise combination(off[0], f"it contradicts '{on[0]}'")


def _switches(controls: ReasoningControls) -> dict[str, bool | UnsetType | None]:
    """Return each control that turns reasoning on or off."""
    reasoning = controls.reasoning
    return {
        "reasoning.enabled": reasoning.enabled,
        "thinking": controls.thinking,
        "reasoning.effort": reasoning.effort and reasoning.effort != "none",
        "reasoning_effort": controls.reasoning_effort and controls.reasoning_effort != "none",
        "reasoning.max_tokens": True if reasoning.max_tokens not in ABSENT else None,
    }


def _visibility(controls: ReasoningControls) -> dict[str, bool | UnsetType | None]:
    """Return each control that shows or hides the reasoning."""
    exclude = controls.reasoning.exclude
    return {
        "reasoning.exclude": not exclude if isinstance(exclude, bool) else exclude,
        "include_reasoning": controls.include_reasoning,
    }
