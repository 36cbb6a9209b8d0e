"""Spans are cut into pieces that lose nothing and count nothing twice."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tollhouse.base.ids import ProjectId, time_ordered_uuid
from tollhouse.reports import rules
from tollhouse.reports.types import Group, PageCursor, ReportSpan, Sums, Used, Width

HOUR, DAY = Width.HOUR, Width.DAY
NOTHING = Sums(
    requests=1,
    estimated_requests=0,
    input_tokens=0,
    cached_input_tokens=0,
    cache_write_tokens=0,
    output_tokens=0,
    images=0,
    input_pico_usd=0,
    cached_input_pico_usd=0,
    cache_write_pico_usd=0,
    output_pico_usd=0,
    image_pico_usd=0,
    request_pico_usd=0,
)


@st.composite
def spans(draw: st.DrawFn) -> ReportSpan:
    """Cut anywhere, or on hours and days, where the mistakes are."""
    unit = draw(st.sampled_from((1, 60, HOUR.value, DAY.value)))
    start = draw(st.integers(0, 5 * DAY)) // unit * unit
    length = draw(st.integers(1, 5 * DAY))
    return ReportSpan(start=start, end=start + max(1, length // unit * unit))


@given(spans(), st.sampled_from(Width))
def test_the_pieces_make_up_the_span_without_gap_or_overlap(span: ReportSpan, width: Width) -> None:
    found = rules.pieces(span, width)
    days = [] if found.days is None else [found.days]
    pieces = sorted([*days, *found.hours, *found.entries], key=lambda piece: piece.start)

    assert pieces[0].start == span.start
    assert pieces[-1].end == span.end
    assert all(one.end == after.start for one, after in pairwise(pieces))
    assert all(piece.start < piece.end for piece in pieces)


@given(spans(), st.sampled_from(Width))
def test_rollups_serve_all_that_is_whole(span: ReportSpan, width: Width) -> None:
    found = rules.pieces(span, width)

    assert found.days is None or (width is DAY and _is_on(found.days, DAY))
    assert all(_is_on(piece, HOUR) for piece in found.hours)
    for piece in found.entries:
        first_whole_hour = -(-piece.start // HOUR) * HOUR
        assert first_whole_hour + HOUR > piece.end, "no whole hour is read from the entries"


def test_a_cut_names_the_parameter_that_makes_it() -> None:
    for span, expected in (
        (ReportSpan(start=1, end=10 * DAY), ["start_time"]),
        (ReportSpan(start=0, end=10 * DAY + 1), ["end_time"]),
        (ReportSpan(start=1, end=10 * DAY + 1), ["start_time", "end_time"]),
        (ReportSpan(start=0, end=30), ["end_time"]),
        (ReportSpan(start=10, end=30), ["start_time"]),
        (ReportSpan(start=HOUR, end=10 * DAY - HOUR), []),
    ):
        pieces = rules.pieces(span, DAY).entries
        assert [rules.cut_parameter(span, piece, Width.HOUR) for piece in pieces] == expected


def test_the_last_page_ends_with_the_bucket_of_the_last_second() -> None:
    for end, last in ((10 * DAY, 10 * DAY), (10 * DAY + 1, 11 * DAY), (10 * DAY - 1, 10 * DAY)):
        page = rules.page_span(PageCursor(bucket=8 * DAY, end=end), DAY, buckets_max=180)
        assert page == ReportSpan(start=8 * DAY, end=last)


def test_a_page_has_no_more_buckets_than_asked_for() -> None:
    page = rules.page_span(PageCursor(bucket=0, end=10 * HOUR), HOUR, buckets_max=3)

    assert [bucket.span.start for bucket in rules.buckets(page, HOUR, [], {})] == [0, 3600, 7200]


def used(model: str | None = None, project: ProjectId | None = None, **sums: int) -> Used:
    group = Group(bucket=0, project_id=project, api_key_id=None, model=model)
    fields = {name: getattr(NOTHING, name) for name in Sums.__slots__}
    return Used(group=group, sums=Sums(**(fields | sums)))


def test_settled_usage_without_a_cost_is_a_line_of_zero() -> None:
    (line,) = rules.cost_lines([used()])

    assert (line.line_item, line.amount) == (None, 0)


def test_a_part_is_a_line_when_it_was_used_or_cost_something() -> None:
    lines = rules.cost_lines(
        [
            used(
                "m",
                requests=9,
                input_tokens=5,
                image_pico_usd=3,
                output_tokens=2,
                output_pico_usd=4,
            )
        ]
    )

    assert [(line.line_item, line.amount) for line in lines] == [
        ("m, image", 3),
        ("m, input", 0),
        ("m, output", 4),
    ]


def test_cache_writes_are_a_line_of_their_own_and_not_part_of_the_input() -> None:
    both = used("m", input_tokens=5, cache_write_tokens=2, input_pico_usd=9, cache_write_pico_usd=4)
    all_written = used(
        "n", input_tokens=5, cache_write_tokens=5, input_pico_usd=9, cache_write_pico_usd=9
    )

    lines = rules.cost_lines([both, all_written])

    assert [(line.line_item, line.amount) for line in lines] == [
        ("m, cache write", 4),
        ("m, input", 5),
        ("n, cache write", 9),
    ]


def test_a_request_is_a_line_only_when_it_has_a_price() -> None:
    lines = rules.cost_lines([used("m", requests=9, request_pico_usd=1), used("n", requests=9)])

    assert [line.line_item for line in lines] == ["m, request"]


def test_lines_are_sorted_by_project_and_then_by_the_text_of_the_item() -> None:
    first, second = sorted(
        (ProjectId(time_ordered_uuid()), ProjectId(time_ordered_uuid())), key=str
    )
    found = [
        used("b", second, input_tokens=1),
        used("b", first, input_tokens=1, cached_input_tokens=1),
        used("a", first, output_tokens=1),
        used("a, z", first, output_tokens=1),
    ]

    lines = rules.cost_lines(rules.merged(found))

    assert [(line.group.project_id, line.line_item) for line in lines] == [
        (first, "a, output"),
        (first, "a, z, output"),
        (first, "b, cached input"),
        (first, "b, input"),
        (second, "b, input"),
    ]


def test_pieces_of_one_group_are_added_up() -> None:
    (merged,) = rules.merged([used("m", input_tokens=2), used("m", input_tokens=3, images=1)])

    assert (merged.sums.requests, merged.sums.input_tokens, merged.sums.images) == (2, 5, 1)


def _is_on(span: ReportSpan, width: Width) -> bool:
    return span.start % width == 0 and span.end % width == 0
