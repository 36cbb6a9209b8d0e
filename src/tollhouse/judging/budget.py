"""How many tokens a judge may spend on one request, estimated before it is asked anything.

Estimates suppose that the judge reads the content once where it comes first, and once for each
question where it comes last.
"""

from collections.abc import Iterable, Sequence

from tollhouse.judging import encoding, layout
from tollhouse.judging.errors import (
    PolicySetTooLarge,
    RuleTooLong,
    SelectionTooLarge,
    TooLongToJudge,
)
from tollhouse.judging.types import JudgedDirection, Order, Profile
from tollhouse.judging.windows import OVERLAP_SHARE, Sheet
from tollhouse.policies.types import AppliedPolicy, Direction, Mode

ANSWER_TOKENS = 40
"""What stands after the content beside the question."""
DIRECTIONS: tuple[JudgedDirection, ...] = (Direction.REQUEST, Direction.RESPONSE)


def check_rule(rule: str, profile: Profile) -> None:
    """Refuse a question for which the judge has no room."""
    tokens = layout.question_tokens(rule, profile)
    if tokens > profile.question_tokens_max:
        raise RuleTooLong(tokens=tokens, tokens_max=profile.question_tokens_max)


def check_set(policies: Sequence[AppliedPolicy], profile: Profile, *, tokens_max: int) -> None:
    """Refuse a set that leaves no room for a window of content in each direction it judges.

    Modes are counted apart, as they are judged.
    """
    for mode in Mode:
        counted = _of_mode(policies, mode)
        tokens = sum(_window_tokens(counted, direction, profile) for direction in DIRECTIONS)
        if tokens > tokens_max:
            raise PolicySetTooLarge(tokens=tokens, tokens_max=tokens_max)


def check_selection(
    sheet: Sheet | None,
    by_scope: Sequence[AppliedPolicy],
    selected: Sequence[AppliedPolicy],
    profile: Profile,
    *,
    tokens_max: int,
) -> None:
    """Refuse what a request adds, if that is what makes it too much; else it is not to blame.

    There is no sheet where nothing is asked about the request. The answer is not there yet and
    counts as one window.
    """
    for mode in Mode:
        without = _of_mode(by_scope, mode)
        tokens = _both_tokens(sheet, (*without, *_of_mode(selected, mode)), profile)
        if tokens > tokens_max and _both_tokens(sheet, without, profile) <= tokens_max:
            raise SelectionTooLarge(tokens_max=tokens_max)


def check_content(
    sheet: Sheet, policies: Sequence[AppliedPolicy], profile: Profile, *, tokens_max: int
) -> int:
    """What judging will take, about; refuses what is too much."""
    tokens = content_tokens(sheet, policies, profile)
    if tokens > tokens_max:
        raise TooLongToJudge
    return tokens


def content_tokens(sheet: Sheet, policies: Sequence[AppliedPolicy], profile: Profile) -> int:
    """What these policies take on this content, about."""
    return sized_tokens(encoding.size_bytes(sheet.text), policies, profile)


def sized_tokens(size_bytes: int, policies: Sequence[AppliedPolicy], profile: Profile) -> int:
    """What these policies take on a content of this size, about, before it is laid out."""
    window_bytes = layout.window_bytes(profile)
    windows = 1
    if size_bytes > window_bytes:
        windows = -(-size_bytes * OVERLAP_SHARE // (window_bytes * (OVERLAP_SHARE - 1)))
        size_bytes = windows * window_bytes
    return _tokens(-(-size_bytes // profile.bytes_per_token), windows, policies, profile)


def applying(
    policies: Iterable[AppliedPolicy], direction: JudgedDirection
) -> tuple[AppliedPolicy, ...]:
    """Those that are asked in this direction."""
    return tuple(each for each in policies if each.direction in {direction, Direction.BOTH})


def _of_mode(policies: Iterable[AppliedPolicy], mode: Mode) -> tuple[AppliedPolicy, ...]:
    return tuple(each for each in policies if each.mode is mode)


def _both_tokens(sheet: Sheet | None, policies: Sequence[AppliedPolicy], profile: Profile) -> int:
    asked = sheet and content_tokens(sheet, applying(policies, Direction.REQUEST), profile)
    return (asked or 0) + _window_tokens(policies, Direction.RESPONSE, profile)


def _window_tokens(
    policies: Sequence[AppliedPolicy], direction: JudgedDirection, profile: Profile
) -> int:
    window_tokens = layout.window_bytes(profile) // profile.bytes_per_token
    return _tokens(window_tokens, 1, applying(policies, direction), profile)


def _tokens(
    content_tokens: int, windows: int, policies: Sequence[AppliedPolicy], profile: Profile
) -> int:
    if not policies:
        return 0
    questions = sum(layout.question_tokens(policy.rule, profile) for policy in policies)
    readings = len(policies) if profile.order is Order.QUESTION_FIRST else 1
    return readings * content_tokens + windows * (questions + ANSWER_TOKENS * len(policies))
