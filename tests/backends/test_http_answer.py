"""Answers as bytes: what is one, what is none, and how much of either is taken."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.backends.errors import ConnectionBroken, NotHttp
from tollhouse.backends.http1 import HEAD_BYTES_MAX, AnswerParser

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Kind: a\r\nx-kind: b\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2;name=value\r\nhe\r\n3\r\nllo\r\n0\r\nX-Kind: trailer\r\n\r\n"
)
WITHOUT_LENGTH = b"HTTP/1.1 200 OK\r\n\r\nhello"


def parsed(*pieces: bytes) -> AnswerParser:
    answer = AnswerParser()
    for piece in pieces:
        answer.feed(piece)
    return answer


def cut(data: bytes, piece_bytes: int) -> list[bytes]:
    return [data[start : start + piece_bytes] for start in range(0, len(data), piece_bytes)]


@given(
    answer=st.sampled_from([PLAIN, CHUNKED, b"HTTP/1.1 103 X\r\nX-Kind: z\r\n\r\n" + PLAIN]),
    cuts=st.lists(st.integers(0, 120), max_size=6),
)
def test_an_answer_is_the_same_wherever_it_is_cut(answer: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(answer)]
    found = parsed(*(answer[a:b] for a, b in pairwise(places)))

    assert found.is_whole
    assert found.keeps_alive
    assert found.status == 200
    assert found.take() == b"hello"
    assert found.headers.get(b"x-kind") == (None if answer is CHUNKED else b"a")


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    answer = parsed(WITHOUT_LENGTH, b" there")
    assert not answer.is_whole

    answer.end()

    assert answer.is_whole
    assert not answer.keeps_alive
    assert answer.take() == b"hello there"


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED])
def test_any_other_answer_must_come_to_its_end(answer: bytes) -> None:
    for size in range(len(answer)):
        with pytest.raises(ConnectionBroken):
            parsed(answer[:size]).end()


@pytest.mark.parametrize(
    "version_and_header",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close",
        b"HTTP/1.0 200 OK\r\nServer: old",
    ],
)
def test_some_answers_are_the_last_of_their_connection(version_and_header: bytes) -> None:
    answer = parsed(version_and_header + b"\r\nContent-Length: 2\r\n\r\nhi")

    assert answer.is_whole
    assert not answer.keeps_alive


@pytest.mark.parametrize(
    "surplus", [PLAIN, b"HTTP/1.1 200 OK\r\n", b"noise", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_what_follows_an_answer_is_never_part_of_it(surplus: bytes) -> None:
    together = parsed(PLAIN + surplus)
    apart = parsed(PLAIN, surplus)

    for answer in (together, apart):
        assert answer.is_whole
        assert not answer.keeps_alive
        assert answer.status == 200
        assert answer.take() == b"hello"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nhi\n0\n\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
        b"\x16\x03\x01\x00\xa5",
    ],
)
def test_framing_that_two_readers_could_take_in_two_ways_is_none(answer: bytes) -> None:
    with pytest.raises(NotHttp):
        parsed(answer)


@pytest.mark.parametrize(
    "endless",
    [
        b"x",
        b"X: " + b"y" * 1_000 + b"\r\n",
        b"\r\nHTTP/1.1 103 Early\r\nX: y\r\n",
    ],
)
@pytest.mark.parametrize("piece_bytes", [1_000, 1_000_000])
def test_a_head_has_a_bound(endless: bytes, piece_bytes: int) -> None:
    endless_head = b"HTTP/1.1 103 Early\r\nX: y\r\n" + endless * (2 * HEAD_BYTES_MAX)
    pieces = cut(endless_head[: 2 * HEAD_BYTES_MAX], piece_bytes)

    with pytest.raises(NotHttp):
        parsed(*pieces)


def test_a_head_may_fill_its_bound() -> None:
    begin, end = b"HTTP/1.1 200 OK\r\nX: ", b"\r\nContent-Length: 5\r\n\r\n"
    head = begin + b"y" * (HEAD_BYTES_MAX - len(begin) - len(end)) + end

    assert parsed(head + b"hello").take() == b"hello"
    with pytest.raises(NotHttp):
        parsed(head.replace(b"y", b"yy", 1) + b"hello")


@pytest.mark.parametrize(
    "endless",
    [b"0\r\n" + b"X: y\r\n" * 100_000, b"2;" + b"x" * 600_000, b"0\r\nX: " + b"y" * 600_000],
)
def test_what_stands_between_pieces_of_a_body_has_a_bound(endless: bytes) -> None:
    begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"

    with pytest.raises(NotHttp):
        parsed(begun, *cut(endless, 10_000))


def test_one_answer_after_another() -> None:
    answer = parsed(PLAIN)
    answer.take()

    answer.begin()
    assert (answer.status, answer.is_whole) == (0, False)
    answer.feed(CHUNKED)

    assert answer.take() == b"hello"
    assert answer.is_whole
