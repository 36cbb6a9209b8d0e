"""What a drawn part of the reference corpus sees is what was recorded."""

from tests.corpus import recording
from tests.corpus.cases import CASES
from tests.corpus.replay import observe
from tests.support import seeds

DRAWN = 150


async def test_drawn_requests_are_answered_charged_and_recorded_as_ever(database_url: str) -> None:
    names = seeds.chance().sample(sorted(CASES), DRAWN)

    found = await observe(database_url, names)

    assert recording.differences(found, recording.read(), recording.allowed()) == []
