"""Where buckets lie, where a span's sums are found, and how sums become lines of cost."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from itertools import chain, groupby
from uuid import UUID

from tollhouse.base.money import PicoUsd
from tollhouse.reports.types import (
    Bucket,
    CostLine,
    Group,
    Part,
    Pieces,
    Place,
    Span,
    Sums,
    Used,
    Width,
)


def pieces(span: Span, width: Width) -> Pieces:
    """Cut a span up; only what lies inside a cut hour has to be read from the entries."""
    days = _whole(span, Width.DAY) if width is Width.DAY else None
    hours: list[Span] = []
    entries: list[Span] = []
    for part in _around(span, days):
        inner = _whole(part, Width.HOUR)
        hours += [] if inner is None else [inner]
        entries += _around(part, inner)
    return Pieces(days=days, hours=tuple(hours), entries=tuple(entries))


def cut_parameter(span: Span, piece: Span) -> str:
    """Which bound of the range cuts the hour that this piece of entries lies in."""
    is_start = piece.start == span.start and piece.start % Width.HOUR
    return "start_time" if is_start else "end_time"


def first_bucket(start: int, width: Width) -> int:
    """The bucket that holds an instant."""
    return _down(start, width)


def page_span(place: Place, width: Width, *, buckets_max: int) -> Span:
    """The buckets of a page, whole: they may reach beyond the range on both sides."""
    end = place.bucket + buckets_max * width
    return Span(start=place.bucket, end=min(end, _up(place.end, width)))


def inside(span: Span, bounds: Span) -> Span:
    """The part of a span that lies within bounds which it overlaps."""
    return Span(start=max(span.start, bounds.start), end=min(span.end, bounds.end))


def merged(found: Iterable[Used]) -> list[Used]:
    """One item per group; a cut day is found in pieces."""
    sums: dict[Group, Sums] = {}
    for used in found:
        known = sums.get(used.group)
        sums[used.group] = used.sums if known is None else _added(known, used.sums)
    return [Used(group=group, sums=sums[group]) for group in sorted(sums, key=_order)]


def buckets(page: Span, width: Width, used: Sequence[Used]) -> tuple[Bucket, ...]:
    """Every bucket of a page, those without usage too."""
    by_bucket: dict[int, list[Used]] = {}
    for item in used:
        by_bucket.setdefault(item.group.bucket, []).append(item)
    return tuple(
        Bucket(
            span=Span(start=start, end=start + width),
            used=tuple(by_bucket.get(start, ())),
        )
        for start in range(page.start, page.end, width)
    )


def cost_lines(used: Sequence[Used]) -> list[CostLine]:
    """The results of one bucket, sorted by the fields that they are grouped by (OQ-129).

    Costs are kept apart by model only for line items, so sums with a model become these.
    """
    lines: list[CostLine] = []
    for _, items in groupby(used, _owner):
        lines += sorted(chain.from_iterable(map(_lines, items)), key=_line_item)
    return lines


def _lines(used: Used) -> Iterator[CostLine]:
    group = used.group
    if group.model is None:
        yield CostLine(group=group, line_item=None, amount=_total(used.sums))
        return
    prefix = f"{group.model}, "
    for part, quantity, amount in _parts(used.sums):
        if quantity > 0 or amount > 0:
            yield CostLine(group=group, line_item=prefix + part, amount=PicoUsd(amount))


def _parts(sums: Sums) -> tuple[tuple[Part, int, int], ...]:
    """With quantity and amount. Every request is one, so only its price makes it a line."""
    return (
        (Part.INPUT, sums.input_tokens, sums.input_pico_usd),
        (Part.CACHED_INPUT, sums.cached_input_tokens, sums.cached_input_pico_usd),
        (Part.OUTPUT, sums.output_tokens, sums.output_pico_usd),
        (Part.REQUEST, 0, sums.request_pico_usd),
        (Part.IMAGE, sums.images, sums.image_pico_usd),
    )


def _total(sums: Sums) -> PicoUsd:
    return PicoUsd(
        sums.input_pico_usd
        + sums.cached_input_pico_usd
        + sums.output_pico_usd
        + sums.image_pico_usd
        + sums.request_pico_usd
    )


def _added(left: Sums, right: Sums) -> Sums:
    names = Sums.__slots__
    values = zip(names, astuple(left), astuple(right), strict=True)
    return Sums(**{name: first + second for name, first, second in values})


def _order(group: Group) -> tuple[int, int, int, str]:
    return group.bucket, _rank(group.project_id), _rank(group.api_key_id), group.model or ""


def _rank(identifier: UUID | None) -> int:
    """Orders IDs as their texts would, at a fraction of the cost."""
    return 0 if identifier is None else identifier.int


def _owner(used: Used) -> tuple[UUID | None, UUID | None]:
    return used.group.project_id, used.group.api_key_id


def _line_item(line: CostLine) -> str:
    return line.line_item or ""


def _whole(span: Span, width: Width) -> Span | None:
    """The whole hours or days inside a span, if there are any."""
    start, end = _up(span.start, width), _down(span.end, width)
    return Span(start=start, end=end) if start < end else None


def _around(outer: Span, inner: Span | None) -> list[Span]:
    """What an inner span leaves of the outer one, before it and after it."""
    if inner is None:
        return [outer]
    sides = ((outer.start, inner.start), (inner.end, outer.end))
    return [Span(start=start, end=end) for start, end in sides if start < end]


def _down(instant: int, width: Width) -> int:
    return instant - instant % width


def _up(instant: int, width: Width) -> int:
    return instant + -instant % width
