"""What an audit row says of a change."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from tollhouse.storage import changes
from tollhouse.storage.changes import Change, DigestedValue


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    rule: str = "so?"
    color: Color = Color.RED
    owners: tuple[UUID, ...] = ()


@dataclass(frozen=True)
class Thing:
    id: str = "thing_1"
    name: str = "a thing"
    is_open: bool = False
    made_at: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    day: date | None = None
    limit_pico_usd: int = 5
    last_used_at: datetime | None = None
    part: Part | None = None


def between(before: Thing | None, after: Thing | None) -> list[Change]:
    """As a reader of the row gets them."""
    found = changes.between(changes.audited(before), changes.audited(after))
    return msgspec.json.decode(msgspec.json.encode(found), type=list[Change])


def test_nothing_changed_is_no_change() -> None:
    used = replace(Thing(), last_used_at=datetime.now(UTC))

    assert between(Thing(), used) == []


def test_values_have_their_wire_forms_in_the_order_of_the_noun() -> None:
    after = replace(Thing(), is_open=True, limit_pico_usd=10**24, day=date(2026, 1, 2))

    assert between(Thing(), after) == [
        Change(field="is_open", before=False, after=True),
        Change(field="day", before=None, after="2026-01-02"),
        Change(field="limit_pico_usd", before="5", after=str(10**24)),
    ]


def test_what_is_new_has_nothing_before_and_what_is_gone_nothing_after() -> None:
    thing = replace(Thing(), part=Part(color=Color.BLUE))
    made, gone = between(None, thing), between(thing, None)

    assert {change.field: change.after for change in made} == {
        "name": "a thing",
        "is_open": False,
        "made_at": "2026-01-02T03:04:05Z",
        "limit_pico_usd": "5",
        "part.rule": DigestedValue(sha256=_sha256('"so?"'), length=5),
        "part.color": "blue",
        "part.owners": [],
    }
    assert all(change.before is None for change in made)
    assert [(change.field, change.before) for change in gone] == [
        (change.field, change.after) for change in made
    ]


def test_a_part_is_compared_field_by_field() -> None:
    owner = UUID(int=7)
    before, after = replace(Thing(), part=Part()), replace(Thing(), part=Part(owners=(owner,)))

    assert between(before, after) == [Change(field="part.owners", before=[], after=[str(owner)])]


def test_a_value_of_more_than_256_characters_is_digested() -> None:
    longest, longer = "é" * 254, "é" * 255
    (change,) = between(replace(Thing(), name=longest), replace(Thing(), name=longer))

    assert change.before == longest
    assert change.after == DigestedValue(sha256=_sha256(f'"{longer}"'), length=257)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
