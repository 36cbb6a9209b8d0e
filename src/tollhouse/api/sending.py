"""Answers on the wire: the headers that all of them have, and what is left of a request's body."""

from dataclasses import dataclass

from tollhouse.api.body import Body, Send
from tollhouse.api.errors import Reply
from tollhouse.api.streams import STREAM_HEADERS, StreamReply
from tollhouse.base.ids import RequestId
from tollhouse.contract.errors import ErrorShape

_NO_CONTENT = 204


@dataclass(frozen=True, kw_only=True, slots=True)
class Framing:
    """What of a request decides how its answer is sent."""

    request_id: RequestId
    method: str
    shape: ErrorShape
    body: Body
    waits_for_continue: bool


async def send_reply(send: Send, reply: Reply, framing: Framing) -> None:
    """Send it, and swallow what the caller still sends, so that it reads the answer first."""
    body = framing.body
    has_content = framing.method != "HEAD" and reply.status != _NO_CONTENT
    content = reply.body if has_content else b""
    # Read before anything is awaited: the headers promise to close by the same fact.
    is_unread = not body.is_finished
    head = {
        "type": "http.response.start",
        "status": reply.status,
        "headers": headers_of(reply, framing),
    }
    await send(head)
    if not is_unread or framing.waits_for_continue or body.has_timed_out:
        await send({"type": "http.response.body", "body": content})
        return
    await send({"type": "http.response.body", "body": content, "more_body": True})
    await body.discard()
    await send({"type": "http.response.body", "body": b""})


def headers_of(reply: Reply | StreamReply, framing: Framing) -> list[tuple[bytes, bytes]]:
    """Every answer has the request's ID; one to a body that was not read closes."""
    request_id = str(framing.request_id).encode()
    headers = [
        (b"x-request-id", request_id),
        *((name.encode(), value.encode()) for name, value in reply.headers),
    ]
    if isinstance(reply, StreamReply):
        headers += STREAM_HEADERS
    else:
        headers.append((b"cache-control", b"no-store"))
        if reply.body:
            headers.append((b"content-type", b"application/json"))
            headers.append((b"content-length", str(len(reply.body)).encode()))
    if framing.shape is ErrorShape.MESSAGES:
        headers.append((b"request-id", request_id))
    if not framing.body.is_finished:
        headers.append((b"connection", b"close"))
    return headers
