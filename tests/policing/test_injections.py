"""Contents that try to speak to the judge: none of them leaves its fence."""

import pytest

from tests.support.courthouse import BODIES, CHAT, RESPONSES, Courthouse
from tests.support.injections import BANK, fenced
from tollhouse.policies.types import Direction

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("attack", BANK)
async def test_an_attack_stays_inside_its_fence(
    courthouse: Courthouse, path: str, attack: str
) -> None:
    await courthouse.forbid("bread", direction=Direction.REQUEST)

    answer = await courthouse.send(path, BODIES[path](attack))

    (heard,) = courthouse.judge.heard
    assert answer.status_code == (403 if "bread" in attack else 200)
    assert attack in heard.texts, "the judge reads what was sent, to the letter"
    assert fenced(heard.prompt, heard.fence) == heard.data


async def test_the_fence_is_not_to_be_guessed(courthouse: Courthouse) -> None:
    """What one content learned of its fence says nothing of another's."""
    await courthouse.forbid("bread", direction=Direction.REQUEST)
    for text in ("one", "two", "three"):
        await courthouse.send(CHAT, BODIES[CHAT](text))

    fences = {heard.fence for heard in courthouse.judge.heard}
    assert len(fences) == 3
    assert all(len(fence) == 32 for fence in fences)
