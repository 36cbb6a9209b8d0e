"""A caller's trace goes on through the gateway to the engine, if the operator exports spans."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.collector import Collector, collecting
from tests.support.deployment import chat, offering, open_deployment
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import OtelSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/v1/chat/completions"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def header(flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{TRACE}-{PARENT}-{flags}", "tracestate": "vendor=secret"}


async def traced(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    requests: list[tuple[dict[str, Any], dict[str, str]]],
    **otel: Any,  # noqa: ANN401 - settings
) -> list[Any]:
    """The spans of these requests, each with its fields and headers."""
    upstream.seen.clear()
    with collecting(Collector()) as collector:
        chosen = msgspec.structs.replace(
            offering(settings, upstream.base_url), otel=OtelSettings(endpoint=collector.url, **otel)
        )
        async with open_deployment(chosen, upstream, org) as deployment:
            async with deployment.customer() as client:
                for fields, headers in requests:
                    answer = await client.post(CHAT, json=chat(**fields), headers=headers)
                    assert answer.is_success
            await deployment.settled(len(requests))
    return collector.spans()


@pytest.mark.parametrize("flags", ["00", "01"])
async def test_a_span_is_below_the_callers_and_above_the_engines_whatever_its_flags(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, flags: str
) -> None:
    """So that no caller can switch off the operator's span."""
    requests = [({"stream": is_stream}, header(flags)) for is_stream in (False, True)]
    spans = await traced(settings, upstream, org, requests)

    for span, exchange in zip(spans, upstream.seen, strict=True):
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
        assert exchange.headers["traceparent"] == f"00-{TRACE}-{span.span_id.hex()}-01"
        assert "tracestate" not in exchange.headers


async def test_without_a_valid_header_a_trace_begins(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    invalid = {"traceparent": f"00-{TRACE.upper()}-{PARENT}-01"}
    first, second = await traced(settings, upstream, org, [({}, {}), ({}, invalid)])

    for span, exchange in zip((first, second), upstream.seen, strict=True):
        request_id = _attribute(span, "tollhouse.request_id")
        assert span.trace_id.hex() == request_id.replace("-", "")
        assert span.parent_span_id == b""
        assert exchange.headers["traceparent"].split("-")[1] == span.trace_id.hex()
    assert first.trace_id != second.trace_id


async def test_callers_who_are_not_followed_cannot_choose_the_trace(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    (span,) = await traced(settings, upstream, org, [({}, header("00"))], follows_callers=False)

    assert span.trace_id.hex() != TRACE
    assert upstream.seen[-1].headers["traceparent"].endswith("-01")


async def test_a_trace_that_is_not_sampled_has_no_span_and_says_so_to_the_engine(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    assert await traced(settings, upstream, org, [({}, header())], sample_ratio=0.0) == []

    _, trace_id, _, flags = upstream.seen[-1].headers["traceparent"].split("-")
    assert (trace_id, flags) == (TRACE, "00")


async def test_without_an_endpoint_the_header_is_not_forwarded(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    offered = offering(settings, upstream.base_url)
    async with (
        open_deployment(offered, upstream, org) as deployment,
        deployment.customer() as client,
    ):
        answer = await client.post(CHAT, json=chat(), headers=header())

    assert answer.is_success
    sent = upstream.seen[-1]
    assert "traceparent" not in sent.headers
    assert TRACE not in json.dumps([dict(sent.headers), sent.body.decode()])


def _attribute(span: Any, name: str) -> str:  # noqa: ANN401 - a message of the protocol
    return next(each.value.string_value for each in span.attributes if each.key == name)
