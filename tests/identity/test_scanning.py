"""The pattern that the documentation gives to scanners of secrets finds keys and nothing else."""

import base64
import os
import re
from pathlib import Path

import pytest

from tests.support import seeds
from tests.support.credentials import ALPHABET
from tollhouse.keys.secrets import is_well_formed, mint
from tollhouse.keys.types import KeyKind

STRINGS = int(os.environ.get("TOLLHOUSE_SCANNED_STRINGS", "20000"))
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "operating-keys.md"
PATTERN = re.compile(re.findall(r"`(\\bth.+?)`", PAGE.read_text("utf-8"))[0])
SHAPES = 5
CELLS = (None, "eu1", "a", "a234567890123456")
SURROUNDINGS = (
    "{}",
    "Authorization: Bearer {}\r\n",
    'client = OpenAI(api_key="{}")',
    "export TOLLHOUSE_PROJECT_KEY={}\n",
    '{{"key":"{}","next":1}}',
    "curl -H 'Authorization: Bearer {}' https://example.com",
    "https://example.com/?key={}&page=2",
    "- {}, {}",
)


@pytest.mark.guarantee("T20")
def test_every_key_is_found_wherever_it_stands() -> None:
    chance = seeds.chance()
    for number in range(STRINGS):
        kind = chance.choice(list(KeyKind))
        key = mint(kind, cell=CELLS[number % len(CELLS)]).value
        text = SURROUNDINGS[number % len(SURROUNDINGS)].format(*[key] * 2)

        assert set(PATTERN.findall(text)) == {key}


@pytest.mark.guarantee("T20")
def test_random_strings_are_no_keys() -> None:
    """The last shape has the form of a key, and fails its checksum."""
    chance = seeds.chance()

    def text(number: int) -> str:
        size = chance.randrange(1, 200)
        match number % SHAPES:
            case 0:
                return base64.b64encode(chance.randbytes(size)).decode()
            case 1:
                return chance.randbytes(size).hex()
            case 2:
                return "sk-proj-" + "".join(chance.choices(ALPHABET, k=size))
            case 3:
                return "".join(chance.choices(ALPHABET + "_-. ", k=size))
            case _:
                return chance.choice(("thp_", "tha_")) + "".join(chance.choices(ALPHABET, k=49))

    found = [
        match
        for number in range(STRINGS)
        for match in PATTERN.findall(text(number))
        if number % SHAPES < SHAPES - 1 or is_well_formed(match)
    ]

    assert found == []
