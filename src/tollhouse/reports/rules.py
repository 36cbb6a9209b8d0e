"""Rules of reports, without I/O: buckets, the sources of sums, and lines of cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import chain, groupby
from uuid import UUID

from tollhouse.base.money import PicoUsd
from tollhouse.reports.types import (
    Bucket,
    CostLine,
    CostPart,
    Group,
    PageCursor,
    Pieces,
    ReportSpan,
    Sums,
    UnsettledUsage,
    Used,
    Width,
)

NOTHING_UNSETTLED = UnsettledUsage(requests=0, held_pico_usd=PicoUsd(0))


def pieces(span: ReportSpan, width: Width) -> Pieces:
    """Split a span into whole days, whole hours, and parts of hours, which need the entries."""
    days = _whole(span, Width.DAY) if width is Width.DAY else None
    hours: list[ReportSpan] = []
    entries: list[ReportSpan] = []
    for part in _around(span, days):
        inner = _whole(part, Width.HOUR)
        hours += [] if inner is None else [inner]
        entries += _around(part, inner)
    return Pieces(days=days, hours=tuple(hours), entries=tuple(entries))


def cut_parameter(span: ReportSpan, piece: ReportSpan, unit: Width) -> str:
    """Return the parameter of the range that cuts the hour or the day of this piece."""
    is_start = piece.start == span.start and piece.start % unit
    return "start_time" if is_start else "end_time"


def first_bucket(start: int, width: Width) -> int:
    """Return the start of the bucket that contains an instant."""
    return _down(start, width)


def page_span(place: PageCursor, width: Width, *, buckets_max: int) -> ReportSpan:
    """Return the span of a page's whole buckets, which may exceed the range on both sides."""
    end = place.bucket + buckets_max * width
    return ReportSpan(start=place.bucket, end=min(end, _up(place.end, width)))


def inside(span: ReportSpan, bounds: ReportSpan) -> ReportSpan:
    """Return the intersection of a span and bounds that it overlaps."""
    return ReportSpan(start=max(span.start, bounds.start), end=min(span.end, bounds.end))


def merged(found: Iterable[Used]) -> list[Used]:
    """Return one item per group, sorted; a cut day is read in several pieces."""
    sums: dict[Group, Sums] = {}
    for used in found:
        known = sums.get(used.group)
        sums[used.group] = used.sums if known is None else _added(known, used.sums)
    return [Used(group=group, sums=sums[group]) for group in sorted(sums, key=_order)]


def buckets(
    page: ReportSpan, width: Width, used: Sequence[Used], unsettled: Mapping[int, UnsettledUsage]
) -> tuple[Bucket, ...]:
    """Return every bucket of a page, including those without usage.

    `unsettled` has the unsettled requests by the start of their bucket.
    """
    by_bucket: dict[int, list[Used]] = {}
    for item in used:
        by_bucket.setdefault(item.group.bucket, []).append(item)
    return tuple(
        Bucket(
            span=ReportSpan(start=start, end=start + width),
            used=tuple(by_bucket.get(start, ())),
            unsettled=unsettled.get(start, NOTHING_UNSETTLED),
        )
        for start in range(page.start, page.end, width)
    )


def cost_lines(used: Sequence[Used]) -> list[CostLine]:
    """Return the results of one bucket, sorted by the fields that group them (OQ-129).

    Costs are grouped by model only for line items, so sums with a model become line items.
    """
    lines: list[CostLine] = []
    for _, items in groupby(used, _owner):
        lines += sorted(chain.from_iterable(map(_lines, items)), key=_line_item)
    return lines


def _lines(used: Used) -> Iterator[CostLine]:
    group = used.group
    if group.model is None:
        yield CostLine(group=group, line_item=None, amount=total(used.sums))
        return
    prefix = f"{group.model}, "
    for part, _, amount in cost_parts(used):
        yield CostLine(group=group, line_item=prefix + part, amount=amount)


def cost_parts(used: Used) -> Iterator[tuple[CostPart, int, PicoUsd]]:
    """Return the parts that make a line item, each with its quantity and amount."""
    for part, quantity, amount in _parts(used.sums):
        if quantity > 0 or amount > 0:
            count = used.sums.requests if part is CostPart.REQUEST else quantity
            yield part, count, PicoUsd(amount)


def _parts(sums: Sums) -> tuple[tuple[CostPart, int, int], ...]:
    """Return each part with its quantity and amount.

    The quantity of requests is 0 here, so that only their price makes a line.
    """
    written, written_pico_usd = sums.cache_write_tokens, sums.cache_write_pico_usd
    return (
        (CostPart.INPUT, sums.input_tokens - written, sums.input_pico_usd - written_pico_usd),
        (CostPart.CACHE_WRITE, written, written_pico_usd),
        (CostPart.CACHED_INPUT, sums.cached_input_tokens, sums.cached_input_pico_usd),
        (CostPart.OUTPUT, sums.output_tokens, sums.output_pico_usd),
        (CostPart.REQUEST, 0, sums.request_pico_usd),
        (CostPart.IMAGE, sums.images, sums.image_pico_usd),
    )


def total(sums: Sums) -> PicoUsd:
    """Return the cost of all parts."""
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
    return (
        group.bucket,
        _rank(group.project_id),
        _rank(group.api_key_id),
        group.model or "",
    )


def _rank(identifier: UUID | None) -> int:
    """Return a sort key that orders IDs like their texts, but faster."""
    return 0 if identifier is None else identifier.int


def _owner(used: Used) -> tuple[UUID | None, UUID | None]:
    return used.group.project_id, used.group.api_key_id


def _line_item(line: CostLine) -> str:
    return line.line_item or ""


def _whole(span: ReportSpan, width: Width) -> ReportSpan | None:
    """Return the whole hours or days inside a span, or None if there are none."""
    start, end = _up(span.start, width), _down(span.end, width)
    return ReportSpan(start=start, end=end) if start < end else None


def _around(outer: ReportSpan, inner: ReportSpan | None) -> list[ReportSpan]:
    """Return the parts of the outer span before and after the inner one."""
    if inner is None:
        return [outer]
    sides = ((outer.start, inner.start), (inner.end, outer.end))
    return [ReportSpan(start=start, end=end) for start, end in sides if start < end]


def _down(instant: int, width: Width) -> int:
    return instant - instant % width


def _up(instant: int, width: Width) -> int:
    return instant + -instant % width
