"""A judge that matches a policy where its word stands, and fails as planned."""

import asyncio
import math
import re
from typing import TypeVar

from tests.simulation.engine import REPLICA
from tests.simulation.plan import Verdict
from tests.simulation.system import Facts, SimulatedSystem, shortened
from tollhouse.backends.errors import BackendFailed, BackendRejected
from tollhouse.backends.types import UpstreamChoice, UpstreamCompletion, UpstreamRequest

T = TypeVar("T")

WORDS = re.compile(r"q\d+[ap](?:bad)?\d+")
HANGING_SECONDS = 100_000.0
_RULE = re.compile(r"Does the text break rule (\d+) of organization \d+, version \d+\?")
_YES = ("Yes", "yes", " Yes", " yes")
_NO = ("No", "no", " No", " no")
_SPELLINGS = (*_YES, *_NO)
_LIKELY, _UNLIKELY = math.log(0.93), math.log(0.01)


class SimulatedJudge:
    """The judge's backend, of one worker."""

    is_healthy = True

    def __init__(self, system: SimulatedSystem, name: str) -> None:
        self._world = system
        self._random = system.random(f"judge of {name}")

    async def fetch(self, request: UpstreamRequest, kind: type[T]) -> tuple[T, str]:
        """It shows no tokenizer."""
        raise BackendFailed(replica=REPLICA)

    def stream(self, request: UpstreamRequest) -> None:
        """Nobody streams a verdict."""
        raise NotImplementedError

    def is_ready(self, model: str) -> bool:
        return True

    async def complete(self, request: UpstreamRequest) -> tuple[UpstreamCompletion, str]:
        """Answer one question on one window."""
        asked = request.body.decode()
        found = _RULE.search(asked)
        assert found is not None, "every question has a rule"
        words = WORDS.findall(asked)
        fate = self._fate()
        await asyncio.sleep(self._random.choice((0.001, 0.02, 0.3, 4.0)))
        answer = await self._answer(fate, words, policy=found[1])
        if answer == "No":
            self._world.judged[found[0]] |= set(words)
        asking = {each.number: each for each in map(self._world.attempt_with, words)}
        for _, facts in sorted(asking.items()):
            text = f"judge on policy {found[1]}: {answer} ({fate.value}) of {shortened(words)}"
            self._tell(facts, int(found[1]), text)
        return _completion(answer), REPLICA

    def _tell(self, facts: Facts, number: int, text: str) -> None:
        """Monitoring decides nothing of a request, and no policy after its backend failed."""
        policies = self._world.plan.organizations[facts.request.organization].policies
        is_enforcing = any(each.number == number and each.is_enforcing for each in policies)
        if is_enforcing and not facts.is_broken_off:
            self._world.event(facts, text)
        else:
            self._world.note(f"request {facts.number}", text)

    def _fate(self) -> Verdict:
        drawn = self._random.random()
        for verdict, share in self._world.plan.verdicts:
            if drawn < share:
                return verdict
            drawn -= share
        return Verdict.TRUE

    async def _answer(self, fate: Verdict, words: list[str], *, policy: str) -> str:
        match fate:
            case Verdict.TRUE:
                matched = any(word.endswith(f"bad{policy}") for word in words)
                return "Yes" if matched else "No"
            case Verdict.FAILS:
                raise BackendFailed(replica=REPLICA)
            case Verdict.REJECTED:
                raise BackendRejected("too long", replica=REPLICA)
            case Verdict.HANGS:
                await asyncio.sleep(HANGING_SECONDS)
                raise BackendFailed(replica=REPLICA)
            case Verdict.GARBLED:
                return ""
            case Verdict.UNDECIDED:
                return "?"


def _completion(answer: str) -> UpstreamCompletion:
    entries: list[dict[str, object]] = []
    if answer in {"Yes", "No"}:
        entries = [
            {"token": spelling, "logprob": _LIKELY if spelling == answer else _UNLIKELY}
            for spelling in _SPELLINGS
        ]
    elif answer == "?":
        entries = [{"token": word, "logprob": math.log(0.45)} for word in ("Yes", "No")]
    logprobs = {"content": [{"top_logprobs": entries}]}
    return UpstreamCompletion(choices=[UpstreamChoice(logprobs=logprobs)])
