"""The header `traceparent` by the W3C recommendation: valid ones are followed, others ignored."""

import pytest

from tollhouse.base.ids import time_ordered_uuid
from tollhouse.base.trace_context import TraceContext, continued_trace, new_trace
from tollhouse.observability.tracing import trace_contexts

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{PARENT}-01"
REQUEST_ID = time_ordered_uuid()


def followed(*headers: str) -> TraceContext:
    return continued_trace(REQUEST_ID, [header.encode("latin-1") for header in headers] or None)


def test_a_valid_header_gives_trace_and_parent() -> None:
    found = followed(VALID)

    assert found == TraceContext(
        trace_id=int(TRACE, 16),
        span_id=new_trace(REQUEST_ID).span_id,
        parent_id=int(PARENT, 16),
    )
    assert found.traceparent == f"00-{TRACE}-{found.span_id:016x}-01"
    assert len(found.traceparent) == len(VALID)


@pytest.mark.parametrize("flags", ["00", "01", "02", "03", "fe", "ff"])
def test_flags_of_a_caller_do_not_decide_about_sampling(flags: str) -> None:
    found = followed(f"00-{TRACE}-{PARENT}-{flags}")

    assert found == followed(VALID)
    assert found.traceparent.endswith("-01")


@pytest.mark.parametrize(
    "header",
    [f"01-{TRACE}-{PARENT}-01", f"cc-{TRACE}-{PARENT}-01-more", f"fe-{TRACE}-{PARENT}-01-"],
)
def test_a_later_version_is_read_as_far_as_it_is_known(header: str) -> None:
    assert followed(header).parent_id == int(PARENT, 16)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "x",
        f" {VALID}",
        f"{VALID} ",
        f"{VALID}\n",
        f"{VALID}-",
        f"{VALID}-more",
        f"{VALID}0",
        f"cc-{TRACE}-{PARENT}-01more",
        f"ff-{TRACE}-{PARENT}-01",
        f"0-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT.upper()}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-0g",
        f"00-{TRACE}-{PARENT}",
        f"00_{TRACE}_{PARENT}_01",
        f"00-\xb2{TRACE[1:]}-{PARENT}-01",
    ],
)
def test_anything_else_begins_a_trace(header: str) -> None:
    assert followed(header) == new_trace(REQUEST_ID)


def test_two_headers_are_none() -> None:
    assert followed(VALID, VALID) == new_trace(REQUEST_ID)
    assert followed() == new_trace(REQUEST_ID)


def test_callers_are_followed_only_where_the_operator_wants_it() -> None:
    endpoint = "http://127.0.0.1:4318/v1/traces"
    follows = trace_contexts(endpoint, follows_callers=True, sample_ratio=1)
    ignores = trace_contexts(endpoint, follows_callers=False, sample_ratio=1)

    assert follows is not None
    assert ignores is not None
    assert follows(REQUEST_ID, [VALID.encode()]).parent_id == int(PARENT, 16)
    assert ignores(REQUEST_ID, [VALID.encode()]) == new_trace(REQUEST_ID)
    assert trace_contexts(None, follows_callers=True, sample_ratio=1) is None


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0])
def test_a_share_of_all_traces_is_sampled_by_their_ids(ratio: float) -> None:
    """So that services with the same ratio have the same traces."""
    traces = [new_trace(time_ordered_uuid()) for _ in range(2_000)]
    sampled = [each.sampled(ratio) for each in traces]

    assert abs(sum(each.is_sampled for each in sampled) - ratio * 2_000) <= 150 * (ratio % 1 > 0)
    for each in sampled:
        assert each.traceparent.endswith("-01" if each.is_sampled else "-00")
        assert each.sampled(ratio) == each
