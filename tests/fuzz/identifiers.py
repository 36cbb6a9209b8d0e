"""Keys and cursors: what was not made here is refused, and says nothing else."""

from uuid import UUID

from tollhouse.base.ids import OrganizationId, parse_uuid
from tollhouse.keys.secrets import cell_of, is_well_formed, mint, redact
from tollhouse.keys.types import KeyKind
from tollhouse.reports.cursors import Cursors
from tollhouse.reports.errors import InvalidCursor
from tollhouse.reports.types import CostFilter, CostQuery, CostSubject, PageCursor, Width
from tollhouse.storage.master_secrets import MasterSecrets

OWNER = OrganizationId(UUID(int=1))
MASTERS = MasterSecrets([b"0123456789abcdefghijklmnopqrstuv"])
CURSORS = Cursors(MASTERS)
MASTER_ID = MASTERS.ids[0]
QUESTION = CostQuery(
    subject=CostSubject.COSTS,
    start=0,
    width=Width.DAY,
    only=CostFilter(),
    grouping=frozenset(),
)
CURSOR = CURSORS.write(OWNER, QUESTION, PageCursor(bucket=86_400, end=2**40), master_id=MASTER_ID)
SEEDS = (
    mint(KeyKind.PROJECT).value.encode(),
    mint(KeyKind.ADMIN, cell="eu1").value.encode(),
    CURSOR.encode(),
    str(UUID(int=2**100)).encode(),
)
BODY_AND_CHECKSUM = 49


def check(data: bytes) -> None:
    """Read any text as a key, as a cursor and as an ID."""
    text = data.decode("utf-8", "surrogateescape")
    _check_key(text)
    _check_cursor(text)
    parsed = parse_uuid(text)
    assert parsed is None or str(parsed) == text.lower(), "an ID has one form"


def _check_key(text: str) -> None:
    if not is_well_formed(text):
        assert cell_of(text) is None
        return
    shown, _, end = redact(text).partition("...")
    assert text.startswith(shown)
    assert text.endswith(end)
    assert len(text) - len(shown) - len(end) >= BODY_AND_CHECKSUM - 8
    for place in range(len(text) - BODY_AND_CHECKSUM, len(text)):
        other = "1" if text[place] == "0" else "0"
        assert not is_well_formed(text[:place] + other + text[place + 1 :]), "a typo is refused"


def _check_cursor(text: str) -> None:
    try:
        place = CURSORS.read(OWNER, QUESTION, text)
    except InvalidCursor:
        return
    made = CURSORS.write(OWNER, QUESTION, place, master_id=MASTER_ID)
    assert made == text, "a cursor is accepted in the form in which it was made"
