"""The controls of reasoning in a chat request, and when they contradict each other (OQ-35)."""

from typing import ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import Effort, OutputBound
from tollhouse.contract.combinations import combination, is_set
from tollhouse.contract.origins import GIVEN


class Reasoning(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Effort and `max_tokens` (a budget) are alternatives."""

    mark: ClassVar[Meta] = GIVEN

    enabled: bool | UnsetType | None = UNSET
    effort: Effort | UnsetType | None = UNSET
    max_tokens: OutputBound | UnsetType | None = UNSET
    exclude: bool | UnsetType | None = UNSET


class ReasoningControls(Struct, frozen=True, kw_only=True):
    """All that a chat request can say about reasoning, gathered from five fields."""

    reasoning: Reasoning
    reasoning_effort: Effort | UnsetType | None
    thinking: bool | UnsetType | None
    include_reasoning: bool | UnsetType | None


def check_reasoning(controls: ReasoningControls) -> None:
    """Refuse what contradicts itself. The same meaning said twice is fine."""
    _check_budget(controls)
    efforts = {controls.reasoning.effort, controls.reasoning_effort} - {UNSET, None}
    if len(efforts) > 1:
        raise combination("reasoning.effort", "it contradicts 'reasoning_effort'")
    _check_agreement(_switches(controls))
    _check_agreement(_visibility(controls))


def _check_budget(controls: ReasoningControls) -> None:
    has_effort = is_set(controls.reasoning.effort) or is_set(controls.reasoning_effort)
    if has_effort and is_set(controls.reasoning.max_tokens):
        raise combination("reasoning.max_tokens", "send it or an effort, not both")


def _check_agreement(controls: dict[str, bool | UnsetType | None]) -> None:
    on = [name for name, value in controls.items() if value is True]
    off = [name for name, value in controls.items() if value is False]
    if on and off:
        raise combination(off[0], f"it contradicts '{on[0]}'")


def _switches(controls: ReasoningControls) -> dict[str, bool | UnsetType | None]:
    """Each control that turns reasoning on or off."""
    reasoning = controls.reasoning
    return {
        "reasoning.enabled": reasoning.enabled,
        "thinking": controls.thinking,
        "reasoning.effort": reasoning.effort and reasoning.effort != "none",
        "reasoning_effort": controls.reasoning_effort and controls.reasoning_effort != "none",
        "reasoning.max_tokens": True if is_set(reasoning.max_tokens) else None,
    }


def _visibility(controls: ReasoningControls) -> dict[str, bool | UnsetType | None]:
    """Each control that shows or hides what was reasoned."""
    exclude = controls.reasoning.exclude
    return {
        "reasoning.exclude": not exclude if isinstance(exclude, bool) else exclude,
        "include_reasoning": controls.include_reasoning,
    }
