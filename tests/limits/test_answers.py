"""Answers of Redis, as bytes in and lines out, however the network cuts them."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import InvalidResponse

from tollhouse.limits.redis_connection import LINE_BYTES_MAX, AnswerReader

lines = st.lists(st.binary(max_size=40).map(lambda text: text.replace(b"\r", b" ")), max_size=20)


@given(lines, st.lists(st.integers(0, 400), max_size=10))
def test_lines_are_whole_however_they_arrive(sent: list[bytes], cuts: list[int]) -> None:
    received: list[bytes] = []
    reader = AnswerReader(received.extend, lambda _, __: None)
    data = b"".join(line + b"\r\n" for line in sent)

    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in itertools.pairwise(places):
        reader.data_received(data[start:end])

    assert received == sent


def test_a_line_without_an_end_ends_the_connection() -> None:
    failures: list[BaseException | None] = []
    reader = AnswerReader(lambda _: None, lambda _, failure: failures.append(failure))

    reader.data_received(b"+" * LINE_BYTES_MAX)
    assert failures == []
    reader.data_received(b"+")

    assert [type(failure) for failure in failures] == [InvalidResponse]
