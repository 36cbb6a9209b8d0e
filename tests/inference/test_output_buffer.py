"""Unread output counts against the buffer of the worker, of which an organization has a share."""

import pytest

from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.inference.allowance import COUNTED_BYTES_MIN, HeldBytes, HoldingBounds
from tollhouse.inference.errors import NoRoomToHold, OutputBufferExceeded

KILOBYTES = 1_024
SHARE = 64 * KILOBYTES


@pytest.fixture
def buffers() -> HeldBytes:
    return HeldBytes(HoldingBounds(request_max=SHARE, worker_max=4 * SHARE))


def leave() -> None:
    """Nobody is cut in this test."""


def organization() -> OrganizationId:
    return OrganizationId(time_ordered_uuid())


def test_a_piece_counts_while_it_is_sent(buffers: HeldBytes) -> None:
    output = buffers.output_of(organization())

    counted = output.begin_write(SHARE, leave)

    assert buffers.held == SHARE
    output.end_write(counted)
    assert buffers.held == 0


def test_small_pieces_are_left_to_the_connection(buffers: HeldBytes) -> None:
    output = buffers.output_of(organization())

    assert output.begin_write(COUNTED_BYTES_MIN - 1, leave) is None
    assert buffers.held == 0


def test_an_organization_has_no_more_than_its_share(buffers: HeldBytes) -> None:
    slow = organization()
    buffers.output_of(slow).begin_write(SHARE, leave)

    with pytest.raises(OutputBufferExceeded):
        buffers.output_of(slow).begin_write(COUNTED_BYTES_MIN, leave)

    assert buffers.output_of(organization()).begin_write(SHARE, leave) is not None


def test_what_an_answer_retains_grows_and_is_released_once(buffers: HeldBytes) -> None:
    output = buffers.output_of(organization())

    output.retain(10 * KILOBYTES)
    output.retain(10 * KILOBYTES + 1)
    output.retain(30 * KILOBYTES)

    assert buffers.held == 30 * KILOBYTES
    output.release()
    output.release()
    assert buffers.held == 0


def test_a_refused_piece_leaves_nothing_counted(buffers: HeldBytes) -> None:
    output = buffers.output_of(organization())
    output.retain(SHARE)

    with pytest.raises(OutputBufferExceeded):
        output.begin_write(SHARE, leave)
    output.release()

    assert buffers.held == 0


def test_unread_output_and_withheld_answers_share_one_buffer(buffers: HeldBytes) -> None:
    for _ in range(3):
        buffers.of(organization()).take(SHARE)
    buffers.output_of(organization()).begin_write(SHARE // 2, leave)

    with pytest.raises(NoRoomToHold):
        buffers.of(organization()).take(SHARE)


def test_who_does_not_read_makes_way_for_who_uses_less(buffers: HeldBytes) -> None:
    cut: list[int] = []
    for number in range(4):
        slow = buffers.output_of(organization())
        slow.begin_write(SHARE // 2, lambda number=number: cut.append(number))
        slow.begin_write(SHARE // 2, lambda number=number: cut.append(number))
    reader = organization()

    served = buffers.output_of(reader).begin_write(SHARE // 4, leave)
    judged = buffers.of(reader)
    judged.take(SHARE // 4)

    assert served is not None
    assert len(cut) == 1
    assert buffers.held == 4 * SHARE


def test_who_was_cut_gives_nothing_back_twice(buffers: HeldBytes) -> None:
    slow = [buffers.output_of(organization()) for _ in range(4)]
    pieces = [output.begin_write(SHARE, leave) for output in slow]
    buffers.output_of(organization()).begin_write(SHARE // 2, leave)

    for output, piece in zip(slow, pieces, strict=True):
        output.end_write(piece)

    assert buffers.held == SHARE // 2


def test_an_answer_that_was_withheld_is_not_counted_twice(buffers: HeldBytes) -> None:
    judged = organization()
    buffers.of(judged).take(SHARE)

    output = buffers.output_of(judged, is_withheld=True)
    output.end_write(output.begin_write(SHARE, leave))
    output.retain(SHARE)

    assert buffers.held == SHARE
