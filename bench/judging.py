"""`python -m bench.judging [--json]`: what many questions about one content cost a real engine.

SmolLM2-135M-Instruct on llama.cpp judges, or on vLLM with `--engine vllm`. The same questions are
put in both orders: content first, as Tollhouse does, and question first. What is counted are the
prompt tokens that the engine says it has evaluated, and the time. The verdicts of this model mean
nothing, and nothing is concluded from them.

Question first takes so long that `--question-first-max` may bound its questions. Then what it
evaluated for those few is a measured least for the many, and the ratio is scaled and says so.

`scores` are of a fixed list of texts, in prompts that are the same to the letter in every run, so
that two engines can be compared: `--compare FILE` does it with the output of an earlier run,
`--compare FILE OTHER` with two of them and no engine. `steadiness` tells how far the scores of one
engine move when it is asked again, and when the same text stands behind another fence.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.support import agreement, evaluators
from bench.support.evaluators import Judging
from tests.journeys.engine_customer import counted_by
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.evaluation.types import Content, PromptOrder

WORDS: Final = ("toll", "house", "keeper", "bread", "road", "bridge", "coin", "lantern")
COMPUTED_QUESTIONS: Final = 1_000


def content(tokens: int) -> Content:
    """About so many tokens that no cache has seen before."""
    words = [secrets.choice(WORDS) for _ in range(tokens - 8)]
    return evaluators.saying(f"{secrets.token_hex(4)} {' '.join(words)}")


def rules(count: int) -> list[str]:
    """Different questions of about the same length."""
    return [
        f"Does the text name item number {number} of the list of goods that are tolled?"
        for number in range(count)
    ]


async def measure(
    judging: Judging, order: PromptOrder, *, questions: int, tokens: int
) -> dict[str, Any]:
    """All questions on one content, one after another, as on one slot."""
    async with evaluators.opened(judging, order, secret=evaluators.fresh_secret()) as bench:
        before, begun = counted_by(judging.engine), time.perf_counter()
        decisions = await bench.decide(content(tokens), rules(questions))
        took_seconds = time.perf_counter() - begun
    used = counted_by(judging.engine) - before
    failed = [
        decision.reason for decision in decisions if decision.outcome is EvaluationOutcome.FAILED
    ]
    assert not failed, failed
    assert all(decision.windows == 1 for decision in decisions), "windows would be measured"
    return {
        "order": order.value,
        "questions": questions,
        "content_tokens": tokens,
        "evaluated_tokens": used.input,
        "cached_tokens": used.cached_input,
        "seconds": round(took_seconds, 2),
    }


async def scores(judging: Judging, secret: bytes = evaluators.FIXED_SECRET) -> list[int | None]:
    """Of the fixed texts; they are the same in every run of one engine, as far as it is."""
    async with evaluators.opened(judging, PromptOrder.CONTENT_FIRST, secret=secret) as bench:
        found = [
            await bench.score(evaluators.saying(text), agreement.RULE) for text in agreement.TEXTS
        ]
    return [None if score is None else score.basis_points for score in found]


async def steadiness(judging: Judging, scored: Sequence[int | None]) -> dict[str, Any]:
    """How far scores move where nothing was changed that should count."""
    again = await scores(judging)
    elsewhere = await scores(judging, evaluators.fresh_secret())
    return {
        "asked_again": asdict(agreement.compared(scored, again)),
        "behind_another_fence": asdict(agreement.compared(scored, elsewhere)),
    }


async def run(judging: Judging, arguments: argparse.Namespace) -> dict[str, Any]:
    """Both orders, each number of questions and each length; then what follows for many."""
    scored = [] if arguments.without_scores else await scores(judging)
    steady = await steadiness(judging, scored) if scored else None
    found: list[dict[str, Any]] = []
    for tokens in arguments.tokens:
        for questions in arguments.questions:
            for order in orders(questions, arguments.question_first_max):
                one = await measure(judging, order, questions=questions, tokens=tokens)
                found.append(one)
                sys.stderr.write(f"{one}\n")
    return {
        "bench": "judging",
        "engine": arguments.engine,
        "model": judging.model,
        "measured": found,
        "ratios": [
            ratio(found, tokens, questions)
            for tokens in arguments.tokens
            for questions in arguments.questions
        ],
        "computed": [
            computed(found, tokens)
            for tokens in arguments.tokens
            if sum(questions <= arguments.question_first_max for questions in arguments.questions)
            > 1
        ],
        "scores": scored,
        "steadiness": steady,
    }


def orders(questions: int, question_first_max: int) -> list[PromptOrder]:
    """Both, as long as the slow one can be waited for."""
    return list(PromptOrder) if questions <= question_first_max else [PromptOrder.CONTENT_FIRST]


def ratio(found: Sequence[dict[str, Any]], tokens: int, questions: int) -> dict[str, Any]:
    """How much less content first takes, and how much less at least where it was not measured."""
    rows = [one for one in found if one["content_tokens"] == tokens]
    (first,) = _of(rows, PromptOrder.CONTENT_FIRST, questions)
    other = max(
        (one for one in _of(rows, PromptOrder.QUESTION_FIRST) if one["questions"] <= questions),
        key=lambda one: one["questions"],
    )
    scale = questions / other["questions"]
    least = other["evaluated_tokens"] / first["evaluated_tokens"]
    return {
        "content_tokens": tokens,
        "questions": questions,
        "is_scaled": other["questions"] < questions,
        "fewer_evaluated_tokens": round(scale * least, 2),
        "fewer_evaluated_tokens_measured_least": round(least, 2),
        "less_time": round(scale * other["seconds"] / first["seconds"], 2),
    }


def computed(found: Sequence[dict[str, Any]], tokens: int) -> dict[str, Any]:
    """For a thousand questions, not measured: what each further question took, times so many."""
    rows = [one for one in found if one["content_tokens"] == tokens]
    total = {order: _extended(_of(rows, order)) for order in PromptOrder}
    return {
        "content_tokens": tokens,
        "questions": COMPUTED_QUESTIONS,
        "is_computed": True,
        "fewer_evaluated_tokens": round(
            total[PromptOrder.QUESTION_FIRST] / total[PromptOrder.CONTENT_FIRST], 2
        ),
    }


def _extended(rows: Sequence[dict[str, Any]]) -> float:
    least, *_, most = sorted(rows, key=lambda one: one["questions"])
    further = most["questions"] - least["questions"]
    each = (most["evaluated_tokens"] - least["evaluated_tokens"]) / further
    return least["evaluated_tokens"] + each * (COMPUTED_QUESTIONS - least["questions"])


def _of(
    rows: Sequence[dict[str, Any]], order: PromptOrder, questions: int | None = None
) -> list[dict[str, Any]]:
    return [
        one
        for one in rows
        if one["order"] == order and (questions is None or one["questions"] == questions)
    ]


def _told(path: Path) -> dict[str, Any]:
    """The last line of an earlier run."""
    return msgspec.json.decode(path.read_text(encoding="utf-8").splitlines()[-1])


def main() -> None:
    """Print a line for each measurement, or one JSON object as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.judging")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--engine", choices=("llama", "vllm"), default="llama")
    parser.add_argument("--questions", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--tokens", type=int, nargs="*", default=[300, 1150, 1800])
    parser.add_argument("--question-first-max", type=int, default=100)
    parser.add_argument("--without-scores", action="store_true")
    parser.add_argument("--compare", type=Path, nargs="+", metavar="FILE", default=[])
    arguments = parser.parse_args()
    files = [_told(path) for path in arguments.compare]
    if len(files) > 1:
        result: dict[str, Any] = {"bench": "judging"}
        one, other = files
    else:
        with evaluators.judging_engine(arguments.engine) as judging:
            result = one = asyncio.run(run(judging, arguments))
        other = files[0] if files else None
    if other is not None:
        result["agreement"] = asdict(agreement.compared(one["scores"], other["scores"]))
        result["compared"] = [one["engine"], other["engine"]]
    sys.stdout.write(json.dumps(result, indent=None if arguments.json else 1) + "\n")


if __name__ == "__main__":
    main()
