"""Twelve ways in which gateways were bypassed, each with the mistake that made it possible.

Every case knocks at three doors: a naive guard with the mistake, which is deceived; the same guard
without it, so that nothing else can be the cause; and the gateway.
"""

import pytest
import pytest_asyncio

from tests.evaluation.endpoints import (
    PASSED,
    REFUSED,
    UNDECIDED,
    USAGE,
    WITHHELD,
    WORD,
    Passage,
    guard_of,
    left_in_the_middle,
    passages,
    piece,
    piece_of_call,
    streams,
)
from tests.support.deployment import COMPLETION_PICO_USD, PROMPT_PICO_USD, customer_of
from tests.support.judge import Fault
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    JudgedDeployment,
    OpenJudged,
    decisions_dropped,
    judged_deployment_of,
    sending_at_once,
)
from tests.support.naive_guard import HELD_BYTES_MAX, Mistake, running_guard
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.exchanges import ExchangeOutcome
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER = f"Here is {WORD} ."
QUESTION = f"Where is {WORD}?"
PADDING = "some words " * 10_000
STALL_INSIDE = {"how": "stall", "after": 0, "inside": True}
STREAMS = pytest.mark.parametrize("is_stream", [False, True])


def price(prompt_tokens: int, completion_tokens: int) -> int:
    return prompt_tokens * PROMPT_PICO_USD + completion_tokens * COMPLETION_PICO_USD


@pytest_asyncio.fixture(loop_scope="module")
async def unscathed(judged: JudgedDeployment, other_org: OrganizationFixture) -> JudgedDeployment:
    """A sound answer, to another customer, forgives the judge what it did in tests before."""
    other = await customer_of(judged.deployment.gateway, judged.deployment.upstream, other_org)
    sound = judged_deployment_of(other, judged.judge)
    await sound.forbid("no such word", direction=Direction.REQUEST)
    assert (await sound.send(CHAT, BODIES[CHAT]("Hi"))).status_code == 200
    judged.judge.received.clear()
    return judged


@pytest.mark.parametrize("mistake", Mistake)
async def test_0_no_mistake_alone_makes_a_guard_blind(
    judged: JudgedDeployment, mistake: Mistake
) -> None:
    judged.answers(ANSWER)

    found = await passages(judged, mistake, BODIES[CHAT]("Hi"))

    assert found == [WITHHELD, WITHHELD, WITHHELD]


async def test_1_a_stream_is_judged_too(judged: JudgedDeployment) -> None:
    judged.answers(ANSWER)
    body = BODIES[CHAT]("Hi", stream=True)

    found = await passages(judged, Mistake.IGNORES_STREAMS, body)

    assert found == [PASSED, WITHHELD, WITHHELD]


@STREAMS
@pytest.mark.parametrize("path", [path for path in BODIES if path != CHAT])
async def test_2_every_operation_is_judged(
    judged: JudgedDeployment, path: str, *, is_stream: bool
) -> None:
    judged.answers(ANSWER)
    body = BODIES[path]("Hi", stream=is_stream)

    found = await passages(judged, Mistake.KNOWS_ONE_PATH, body, path=path)

    assert found == [PASSED, WITHHELD, WITHHELD]


@STREAMS
async def test_3_every_choice_is_judged(judged: JudgedDeployment, *, is_stream: bool) -> None:
    if is_stream:
        streams(judged, piece("wine"), piece(WORD, choice=1))
    else:
        said = [{"role": "assistant", "content": text} for text in ("wine", WORD)]
        choices = [{"index": index, "message": each} for index, each in enumerate(said)]
        judged.answers("", body={"choices": choices, "usage": USAGE})
    body = BODIES[CHAT]("Hi", n=2, stream=is_stream)

    found = await passages(judged, Mistake.FIRST_CHOICE_ONLY, body)

    assert found == [PASSED, WITHHELD, WITHHELD]


@pytest.mark.parametrize("path", [*BODIES])
async def test_4_arguments_of_calls_are_judged_in_streams(
    judged: JudgedDeployment, path: str
) -> None:
    called = piece_of_call(name="buy", arguments='{"what":"br')
    streams(judged, piece("Well."), called, piece_of_call(arguments='ead"}'))
    body = BODIES[path]("Hi", stream=True)

    found = await passages(judged, Mistake.CONTENT_ONLY, body, path=path)

    assert found == [PASSED, WITHHELD, WITHHELD]


async def test_5_interleaved_choices_are_told_apart(judged: JudgedDeployment) -> None:
    streams(judged, piece("br"), piece("wi", 1), piece("ead"), piece("ne", 1))
    body = BODIES[CHAT]("Hi", n=2, stream=True)

    found = await passages(judged, Mistake.JOINS_ALL_CHOICES, body)

    assert found == [PASSED, WITHHELD, WITHHELD]


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (Mistake.READS_ONLY_THE_HEAD, PADDING + WORD),
        (Mistake.READS_ONLY_THE_TAIL, f"{WORD} {PADDING}"),
    ],
)
async def test_6_nothing_is_clipped(judged: JudgedDeployment, mistake: Mistake, text: str) -> None:
    """It is longer than the model's context too: refused before anybody could find out."""
    judged.answers(ANSWER)
    body = BODIES[CHAT](text)

    found = await passages(judged, mistake, body, direction=Direction.REQUEST)

    assert found == [PASSED, REFUSED, REFUSED]


async def test_7_a_word_in_many_records_is_one_word(judged: JudgedDeployment) -> None:
    streams(judged, *map(piece, ANSWER))
    body = BODIES[CHAT]("Hi", stream=True)

    found = await passages(judged, Mistake.RECORD_BY_RECORD, body)

    assert found == [PASSED, WITHHELD, WITHHELD]


@pytest.mark.parametrize(
    ("mistake", "outcome", "judged_answers", "charged_tokens"),
    [
        (Mistake.STOPS_WITH_ITS_CALLER, ExchangeOutcome.CALLER_LEFT, 0, 0),
        (None, ExchangeOutcome.COMPLETE, 1, USAGE["total_tokens"]),
    ],
)
async def test_8_work_that_stops_with_its_caller_is_neither_judged_nor_charged(
    judged: JudgedDeployment,
    mistake: Mistake | None,
    outcome: ExchangeOutcome,
    judged_answers: int,
    charged_tokens: int,
) -> None:
    streams(judged, piece(ANSWER), cut=STALL_INSIDE)
    guard = guard_of(judged, mistake)

    async with running_guard(guard) as client:
        exchange, received = await left_in_the_middle(judged, client, reads_head=False)
        if outcome is ExchangeOutcome.COMPLETE:
            exchange.release()
        assert await exchange.end() is outcome

    assert received == b""
    assert (guard.judged, guard.charged_tokens) == (judged_answers, charged_tokens)


@pytest.mark.parametrize(
    ("tells_usage_always", "charges"),
    [
        (False, {price(USAGE["prompt_tokens"], USAGE["completion_tokens"])}),
        (True, {price(2, 2), price(2, 4)}),
    ],
)
@pytest.mark.parametrize("reads_head", [False, True])
async def test_8_who_leaves_pays_and_his_decision_is_accounted_for(
    open_judged: OpenJudged,
    offered: Settings,
    charges: set[int],
    *,
    tells_usage_always: bool,
    reads_head: bool,
) -> None:
    """Where the usage is known at any moment, the answer need not be read to its end."""
    dropped_before = decisions_dropped()
    judged = await open_judged(sending_at_once(offered, 0.01) if reads_head else offered)
    await judged.forbid(WORD, direction=Direction.RESPONSE)
    if tells_usage_always:
        judged.answers(ANSWER, cut={"how": "stall", "after": 3})
    else:
        streams(judged, piece(ANSWER), cut=STALL_INSIDE)

    async with judged.deployment.customer() as client:
        exchange, received = await left_in_the_middle(judged, client, reads_head=reads_head)
        # Who is served after it shows that the gateway has read the connection's end.
        assert (await client.get("/v1/models")).status_code == 200
    exchange.release()

    assert received.startswith(b"HTTP/1.1 200") is reads_head
    assert WORD.encode() not in received
    charged = (await judged.deployment.settled(1)).settled_pico_usd
    await judged.has_recorded_or_dropped(1, dropped_before=dropped_before)
    assert charged in charges


@STREAMS
@pytest.mark.parametrize(("fault", "blocked"), [(None, REFUSED), (Fault.NO_CHOICES, UNDECIDED)])
async def test_9_monitoring_holds_nothing_back(
    unscathed: JudgedDeployment, fault: Fault | None, blocked: Passage, *, is_stream: bool
) -> None:
    unscathed.answers(ANSWER)
    unscathed.judge.fails = lambda _: fault
    body = BODIES[CHAT](QUESTION, stream=is_stream)

    found = await passages(
        unscathed,
        Mistake.MONITORING_BLOCKS,
        body,
        direction=Direction.BOTH,
        mode=Mode.MONITORING,
    )

    assert found == [blocked, PASSED, PASSED]


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        *(
            pytest.param(Mistake.STATUS_200_IS_A_PASS, fault, id=f"10-{fault.name}")
            for fault in (Fault.ERROR_IN_200, Fault.NO_CHOICES, Fault.NO_LOGPROBS)
        ),
        *(
            pytest.param(Mistake.DEFAULTS_TO_NO, fault, id=f"12-{fault.name}")
            for fault in (Fault.NEITHER_SIDE, Fault.EMPTY_LOGPROBS, Fault.UNDECIDED)
        ),
    ],
)
async def test_10_and_12_no_failure_and_no_default_is_a_pass(
    unscathed: JudgedDeployment, mistake: Mistake, fault: Fault
) -> None:
    unscathed.answers(ANSWER)
    unscathed.judge.fails = lambda _: fault
    body = BODIES[CHAT](QUESTION)

    found = await passages(unscathed, mistake, body, direction=Direction.REQUEST)

    assert found == [PASSED, UNDECIDED, UNDECIDED]
    assert len(unscathed.judge.received) > 2, "the gateway has asked too"


async def test_11_what_is_held_is_counted_whole(judged: JudgedDeployment) -> None:
    guess = {"token": "x" * 1_000, "logprob": -1.0}
    token = {"token": "a", "logprob": -0.1, "top_logprobs": [guess] * 20}
    choice = piece("a") | {"logprobs": {"content": [token]}}
    streams(judged, *[choice] * 500)
    await judged.forbid(WORD, direction=Direction.RESPONSE)
    body = BODIES[CHAT]("Hi", stream=True, logprobs=True, top_logprobs=20)
    mistaken, sound = guard_of(judged, Mistake.COUNTS_ONLY_TEXT), guard_of(judged, None)

    async with running_guard(mistaken) as client:
        assert (await client.post(CHAT, json=body)).status_code == 200
    async with running_guard(sound) as client:
        assert (await client.post(CHAT, json=body)).status_code == 503
    answer = await judged.send(CHAT, body)

    assert sound.held_bytes_most <= HELD_BYTES_MAX < mistaken.held_bytes_most
    assert answer.json()["error"]["code"] == "policy_answer_too_long"
    assert (await judged.deployment.settled(1)).settled_pico_usd > 0
