"""A cursor fits one organization and one question, and cannot be made by anybody else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, time_ordered_uuid
from tollhouse.reports.cursors import Cursors
from tollhouse.reports.errors import InvalidCursor
from tollhouse.reports.types import CostFilter, CostQuery, CostSubject, Dimension, PageCursor, Width
from tollhouse.storage.master_secrets import MasterSecrets

CURRENT = MasterSecrets([b"a master secret of more than thirty-two bytes"])
CURSORS = Cursors(CURRENT)
OURS = OrganizationId(time_ordered_uuid())
PROJECT, KEY = ProjectId(time_ordered_uuid()), ProjectKeyId(time_ordered_uuid())
QUESTION = CostQuery(
    subject=CostSubject.COSTS,
    start=1_000,
    width=Width.DAY,
    only=CostFilter(project_ids=frozenset({PROJECT}), api_key_ids=frozenset({KEY})),
    grouping=frozenset({Dimension.PROJECT, Dimension.LINE_ITEM}),
)
PLACE = PageCursor(bucket=86_400, end=253_402_300_799)


def written(masters: MasterSecrets) -> str:
    """A cursor signed with the newest of these secrets."""
    return Cursors(masters).write(OURS, QUESTION, PLACE, master_id=masters.ids[0])


TEXT = written(CURRENT)


def is_refused(text: str, question: CostQuery = QUESTION, owner: OrganizationId = OURS) -> bool:
    try:
        CURSORS.read(owner, question, text)
    except InvalidCursor:
        return True
    return False


def test_a_cursor_leads_back_to_its_place_and_is_short() -> None:
    assert CURSORS.read(OURS, QUESTION, TEXT) == PLACE
    assert len(TEXT) <= 500


@pytest.mark.parametrize(
    "other",
    [
        replace(QUESTION, subject=CostSubject.USAGE),
        replace(QUESTION, start=1_001),
        replace(QUESTION, width=Width.HOUR),
        replace(QUESTION, grouping=frozenset({Dimension.PROJECT})),
        replace(QUESTION, grouping=frozenset[Dimension]()),
        replace(QUESTION, only=replace(QUESTION.only, project_ids=None)),
        replace(QUESTION, only=replace(QUESTION.only, api_key_ids=None)),
        replace(QUESTION, only=replace(QUESTION.only, project_ids=frozenset({ProjectId(KEY)}))),
        replace(
            QUESTION,
            only=CostFilter(
                project_ids=frozenset({ProjectId(KEY)}),
                api_key_ids=frozenset({ProjectKeyId(PROJECT)}),
            ),
        ),
    ],
)
def test_a_cursor_of_another_question_is_refused(other: CostQuery) -> None:
    assert is_refused(TEXT, other)


def test_a_cursor_of_another_organization_or_secret_is_refused() -> None:
    assert is_refused(TEXT, owner=OrganizationId(time_ordered_uuid()))
    assert is_refused(written(MasterSecrets([b"another master secret"])))


def test_a_cursor_of_a_previous_master_secret_is_read_while_that_is_accepted() -> None:
    old, new = b"the previous master secret", b"the present master secret"
    before = written(MasterSecrets([old]))
    during = Cursors(MasterSecrets([new, old]))
    after = Cursors(MasterSecrets([new]))

    assert during.read(OURS, QUESTION, before) == PLACE
    with pytest.raises(InvalidCursor):
        after.read(OURS, QUESTION, before)


@given(st.integers(0, len(TEXT) - 1), st.characters())
def test_every_changed_character_is_noticed(position: int, character: str) -> None:
    changed = TEXT[:position] + character + TEXT[position + 1 :]

    assert changed == TEXT or is_refused(changed)


@given(st.text(max_size=100))
def test_no_text_is_a_cursor_by_chance(text: str) -> None:
    assert is_refused(text)


def test_a_longer_or_padded_spelling_is_refused() -> None:
    for text in (TEXT + "=", TEXT + "AAAA", TEXT[:-4], TEXT[:-1] + "=", f" {TEXT}", TEXT + "\n"):
        assert is_refused(text)
