"""Contents with instructions for the judge: none of them gets past its delimiters."""

import pytest

from tests.support.injections import BANK, delimited
from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment
from tollhouse.base.policies import Direction

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("path", [*BODIES])
@pytest.mark.parametrize("attack", BANK)
async def test_an_attack_stays_inside_its_fence(
    judged: JudgedDeployment, path: str, attack: str
) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)

    answer = await judged.send(path, BODIES[path](attack))

    (question,) = judged.judge.received
    assert answer.status_code == (403 if "bread" in attack else 200)
    assert attack in question.texts, "the judge reads what was sent, to the letter"
    assert delimited(question.prompt, question.delimiter) == question.data


async def test_the_fence_is_not_to_be_guessed(judged: JudgedDeployment) -> None:
    """The delimiter of one content differs from that of another."""
    await judged.forbid("bread", direction=Direction.REQUEST)
    for text in ("one", "two", "three"):
        await judged.send(CHAT, BODIES[CHAT](text))

    delimiters = {question.delimiter for question in judged.judge.received}
    assert len(delimiters) == 3
    assert all(len(delimiter) == 32 for delimiter in delimiters)
