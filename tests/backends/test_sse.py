"""The decoder of events: the same whatever the pieces, the line ends and the text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.backends.sse import EventDecoder, RecordTooLong

TRICKY = (
    "\ufeff: a comment\n"
    "\n"
    "event: chunk\n"
    "id: 7\n"
    'data: {"content":"one\u2028two\u2029three\u0085four [DONE] \\n data: five"}\n'
    "\n"
    "data:no space\n"
    "\n"
    "data: first line\n"
    ": in between\n"
    "data:  second line\n"
    "data\n"
    "retry: 10\n"
    "\n"
    "\n"
    "datum: not this\n"
    "\n"
    "data:\n"
    "\n"
    "data: [DONE]\n"
    "\n"
    "data: what no blank line ends is no record\n"
)
PAYLOADS = [
    '{"content":"one\u2028two\u2029three\u0085four [DONE] \\n data: five"}'.encode(),
    b"no space",
    b"first line\n second line\n",
    b"",
    b"[DONE]",
]
ENDS = {"LF": "\n", "CR": "\r", "CRLF": "\r\n"}


def decoded(*pieces: bytes) -> list[bytes]:
    decoder = EventDecoder()
    return [payload for piece in pieces for payload in decoder.feed(piece)]


@pytest.fixture(params=ENDS.values(), ids=list(ENDS))
def stream(request: pytest.FixtureRequest) -> bytes:
    return TRICKY.replace("\n", request.param).encode()


def test_a_stream_in_one_piece(stream: bytes) -> None:
    assert decoded(stream) == PAYLOADS


def test_a_stream_cut_at_every_offset(stream: bytes) -> None:
    for offset in range(len(stream) + 1):
        assert decoded(stream[:offset], stream[offset:]) == PAYLOADS, offset


def test_a_stream_byte_by_byte(stream: bytes) -> None:
    assert decoded(*(stream[index : index + 1] for index in range(len(stream)))) == PAYLOADS


LINES = st.sampled_from(["data: x", "data:", "data", ": c", "", "id: 1", "data: \u2028", "x"])
MIXED = st.lists(st.tuples(LINES, st.sampled_from(list(ENDS.values())))).map(
    lambda lines: "".join(line + end for line, end in lines).encode()
)


@given(stream=MIXED, cuts=st.lists(st.integers(0, 60)))
def test_pieces_never_matter(stream: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(edges)]

    assert decoded(*pieces) == decoded(stream)


@given(stream=MIXED)
def test_records_are_those_of_the_standard(stream: bytes) -> None:
    assert decoded(stream) == by_the_standard(stream.decode())


def by_the_standard(stream: str) -> list[bytes]:
    """The algorithm of the HTML standard, 9.2.6, line by line."""
    payloads: list[bytes] = []
    data: list[str] = []
    for line in stream.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        name, _, value = line.partition(":")
        if not line and data:
            payloads.append("\n".join(data).encode())
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
    return payloads


def test_a_record_that_does_not_end_is_bounded() -> None:
    decoder = EventDecoder(record_bytes_max=100)
    decoder.feed(b"data: " + b"x" * 94)

    with pytest.raises(RecordTooLong):
        decoder.feed(b"x")


def test_the_bound_is_for_one_record() -> None:
    decoder = EventDecoder(record_bytes_max=100)

    for _ in range(10):
        assert decoder.feed(b"data: " + b"x" * 90 + b"\n\n") == [b"x" * 90]


def test_a_large_record_in_small_pieces_costs_no_more_than_its_size() -> None:
    """Searching from the beginning with each piece would take minutes."""
    decoder = EventDecoder()
    pieces = 80_000
    decoder.feed(b"data: ")

    for _ in range(pieces):
        decoder.feed(b"x" * 100)

    assert decoder.feed(b"\n\n") == [b"x" * 100 * pieces]
