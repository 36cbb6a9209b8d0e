"""The spellings of "yes" and "no" that count, found from an engine's own tokenizer.

A spelling counts only if both answers are one token in it: SmolLM2 has a token for "NO" and none
for "YES", so that counting it would draw every score towards "no".
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from tollhouse.judging.errors import AsymmetricTokenizer

Tokenize = Callable[[str], Awaitable[Sequence[int]]]

_WORDS = (("Yes", "No"), ("yes", "no"), ("YES", "NO"))
_FRAMES = ("{}", " {}", "\n{}", '"{}', "'{}", "*{}", "**{}", "{}.", " {}.", '"{}"', "'{}'")
_SPACES = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})
"""How byte-level and sentence-piece vocabularies write spaces and line ends."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One spelling. Without a tokenizer the tokens have no numbers."""

    yes: str
    no: str
    yes_id: int | None = None
    no_id: int | None = None


@dataclass(frozen=True, slots=True)
class Variants:
    """All spellings that count, each on both sides."""

    all: tuple[Variant, ...]

    @property
    def yes(self) -> frozenset[str]:
        """As many as of the other side."""
        return frozenset(variant.yes for variant in self.all)

    @property
    def no(self) -> frozenset[str]:
        """As many as of the other side."""
        return frozenset(variant.no for variant in self.all)


COMMON = Variants(
    (Variant("Yes", "No"), Variant("yes", "no"), Variant(" Yes", " No"), Variant(" yes", " no"))
)
"""For engines that do not show their tokenizer: the usual vocabularies have these as tokens."""


async def find(tokenize: Tokenize) -> Variants:
    """Ask the tokenizer for every spelling; `tokenize` adds no tokens of its own."""
    found = [
        variant
        for yes, no in _spellings()
        if (variant := _symmetric(yes, await tokenize(yes), no, await tokenize(no))) is not None
    ]
    distinct = _distinct(found)
    if not distinct:
        raise AsymmetricTokenizer
    return Variants(distinct)


def spelled(token: str) -> str:
    """A token as it is on the wire, in the spelling of `Variant`."""
    return token.translate(_SPACES)


def _spellings() -> Iterable[tuple[str, str]]:
    return ((frame.format(yes), frame.format(no)) for frame in _FRAMES for yes, no in _WORDS)


def _symmetric(yes: str, yes_ids: Sequence[int], no: str, no_ids: Sequence[int]) -> Variant | None:
    if len(yes_ids) != 1 or len(no_ids) != 1 or yes_ids[0] == no_ids[0]:
        return None
    return Variant(yes, no, yes_ids[0], no_ids[0])


def _distinct(found: Iterable[Variant]) -> tuple[Variant, ...]:
    """Some tokenizers drop or add a space, so that two spellings are the same token."""
    kept: dict[int, Variant] = {}
    taken: set[int | None] = set()
    for variant in found:
        if variant.yes_id is not None and not taken & {variant.yes_id, variant.no_id}:
            kept[variant.yes_id] = variant
            taken |= {variant.yes_id, variant.no_id}
    return tuple(kept.values())
