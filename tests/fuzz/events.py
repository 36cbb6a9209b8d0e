"""The decoder of server-sent events, in pieces and whole, beside the OpenAI SDK's."""

from openai._streaming import SSEDecoder

from tests.fuzz.pieces import cut
from tollhouse.backends.sse import EventDecoder

SEEDS = (
    b'\x05data: {"a":1}\n\ndata: [DONE]\n\n',
    b"\x00: comment\r\n\r\nevent: x\r\ndata:1\r\ndata: 2\r\n\r\n",
    b"\x02data\r\rdata:\r\r\n\ndata: cut",
    "\x03data: one\u2028two\u0085three\n\n".encode(),
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def check(data: bytes) -> None:
    """Compare the payloads of all pieces with those of the whole, and with those of the SDK."""
    whole, pieces = cut(data)
    decoder = EventDecoder()
    found = [payload for piece in pieces for payload in decoder.feed(piece)]

    assert found == EventDecoder().feed(whole), "pieces change nothing"
    if _is_comparable(whole):
        assert [each.decode() for each in found] == _of_sdk(whole)


def _is_comparable(data: bytes) -> bool:
    """Whether the SDK reads the bytes as the standard says.

    It needs UTF-8 and keeps a byte order mark. It joins lines with CR LF to those with CR alone
    differently, and reports an event without data.
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\r" not in data and not data.startswith(BYTE_ORDER_MARK)


def _of_sdk(data: bytes) -> list[str]:
    events = SSEDecoder().iter_bytes(iter([data]))
    return [event.data for event in events]
