"""Unread output counts against the buffer of the worker, of which an organization has a share."""

import pytest

from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.evaluation.buffer_quota import COUNTED_BYTES_MIN, AnswerBuffers
from tollhouse.evaluation.errors import AnswerBuffersFull, OutputBufferExceeded

KILOBYTES = 1_024
SHARE = 64 * KILOBYTES


@pytest.fixture
def buffers() -> AnswerBuffers:
    return AnswerBuffers(request_max=SHARE, worker_max=4 * SHARE)


def leave() -> None:
    """Nobody is cut in this test."""


def organization() -> OrganizationId:
    return OrganizationId(time_ordered_uuid())


def test_a_piece_counts_while_it_is_sent(buffers: AnswerBuffers) -> None:
    output = buffers.output_for(organization())

    counted = output.begin_write(SHARE, leave)

    assert buffers.used_bytes == SHARE
    output.end_write(counted)
    assert buffers.used_bytes == 0


def test_small_pieces_are_left_to_the_connection(buffers: AnswerBuffers) -> None:
    output = buffers.output_for(organization())

    assert output.begin_write(COUNTED_BYTES_MIN - 1, leave) is None
    assert buffers.used_bytes == 0


def test_an_organization_has_no_more_than_its_share(buffers: AnswerBuffers) -> None:
    slow = organization()
    buffers.output_for(slow).begin_write(SHARE, leave)

    with pytest.raises(OutputBufferExceeded):
        buffers.output_for(slow).begin_write(COUNTED_BYTES_MIN, leave)

    assert buffers.output_for(organization()).begin_write(SHARE, leave) is not None


def test_what_an_answer_retains_grows_and_is_released_once(buffers: AnswerBuffers) -> None:
    output = buffers.output_for(organization())

    output.retain(10 * KILOBYTES)
    output.retain(10 * KILOBYTES + 1)
    output.retain(30 * KILOBYTES)

    assert buffers.used_bytes == 30 * KILOBYTES
    output.release()
    output.release()
    assert buffers.used_bytes == 0


def test_a_refused_piece_leaves_nothing_counted(buffers: AnswerBuffers) -> None:
    output = buffers.output_for(organization())
    output.retain(SHARE)

    with pytest.raises(OutputBufferExceeded):
        output.begin_write(SHARE, leave)
    output.release()

    assert buffers.used_bytes == 0


def test_unread_output_and_withheld_answers_share_one_buffer(buffers: AnswerBuffers) -> None:
    for _ in range(3):
        buffers.quota_for(organization()).acquire(SHARE)
    buffers.output_for(organization()).begin_write(SHARE // 2, leave)

    with pytest.raises(AnswerBuffersFull):
        buffers.quota_for(organization()).acquire(SHARE)


def test_who_does_not_read_makes_way_for_who_uses_less(buffers: AnswerBuffers) -> None:
    cut: list[int] = []
    for number in range(4):
        slow = buffers.output_for(organization())
        slow.begin_write(SHARE // 2, lambda number=number: cut.append(number))
        slow.begin_write(SHARE // 2, lambda number=number: cut.append(number))
    reader = organization()

    served = buffers.output_for(reader).begin_write(SHARE // 4, leave)
    judged = buffers.quota_for(reader)
    judged.acquire(SHARE // 4)

    assert served is not None
    assert len(cut) == 1
    assert buffers.used_bytes == 4 * SHARE


def test_who_was_cut_gives_nothing_back_twice(buffers: AnswerBuffers) -> None:
    slow = [buffers.output_for(organization()) for _ in range(4)]
    pieces = [output.begin_write(SHARE, leave) for output in slow]
    buffers.output_for(organization()).begin_write(SHARE // 2, leave)

    for output, piece in zip(slow, pieces, strict=True):
        output.end_write(piece)

    assert buffers.used_bytes == SHARE // 2


def test_an_answer_that_was_withheld_is_not_counted_twice(buffers: AnswerBuffers) -> None:
    judged = organization()
    buffers.quota_for(judged).acquire(SHARE)

    output = buffers.output_for(judged, is_withheld=True)
    output.end_write(output.begin_write(SHARE, leave))
    output.retain(SHARE)

    assert buffers.used_bytes == SHARE
