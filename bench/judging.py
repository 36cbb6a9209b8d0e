"""`python -m bench.judging [--json]`: what many questions about one content cost a real engine.

SmolLM2-135M-Instruct on llama.cpp judges, or on vLLM with `--engine vllm`. The same questions are
put in both orders: content first, as Tollhouse does, and question first. What is counted are the
prompt tokens that the engine says it has evaluated, and the time. The verdicts of this model mean
nothing, and nothing is concluded from them.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import secrets
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from tests.journeys.till import counted_by
from tests.support.engine import Engine, running_engine
from tests.support.judge import backend_of
from tests.support.vllm import NAME as VLLM_MODEL
from tests.support.vllm import running_vllm
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import OrganizationId, PolicyId, RequestId, time_ordered_uuid
from tollhouse.cli.demo_engine import MODEL as LLAMA_MODEL
from tollhouse.judging.court import Court, JudgeConfig
from tollhouse.judging.types import Content, Order, Outcome, Part, Profile, Reading
from tollhouse.policies.types import AppliedPolicy, Direction, Mode
from tollhouse.testing.llama import SLOT_TOKENS

WORDS: Final = ("toll", "house", "keeper", "bread", "road", "bridge", "coin", "lantern")
DEADLINE_SECONDS: Final = 3_600.0
COMPUTED_QUESTIONS: Final = 1_000


@contextmanager
def engine_of(name: str) -> Generator[tuple[Engine, str]]:
    """An engine that nobody else uses, and its name for the model."""
    if name == "vllm":
        with running_vllm() as engine:
            yield engine, VLLM_MODEL
    else:
        with running_engine() as engine:
            yield engine, LLAMA_MODEL


def content(tokens: int) -> Content:
    """About so many tokens that no cache has seen before."""
    words = [f"{secrets.choice(WORDS)}" for _ in range(tokens - 8)]
    text = f"{secrets.token_hex(4)} {' '.join(words)}"
    return Content(direction=Direction.REQUEST, parts=(Part("text", text),), opening=1)


def policies(count: int) -> list[AppliedPolicy]:
    """Different questions of about the same length."""
    return [
        AppliedPolicy(
            id=PolicyId(time_ordered_uuid()),
            version=1,
            rule=f"Does the text name item number {number} of the list of goods that are tolled?",
            direction=Direction.REQUEST,
            mode=Mode.MONITORING,
            match_threshold_basis_points=5_000,
        )
        for number in range(count)
    ]


async def measure(
    engine: Engine, model: str, reading: Reading, order: Order, *, questions: int, tokens: int
) -> dict[str, Any]:
    """All questions on one content, one after another, as on one slot."""
    profile = Profile(
        model=model,
        context_tokens=SLOT_TOKENS,
        question_tokens_max=128,
        order=order,
        reading=reading,
        # One window, whatever the estimate says: windows would be measured else.
        bytes_per_token=6,
        coverage_floor_basis_points=1,
    )
    config = JudgeConfig(
        backend="judge",
        profile=profile,
        has_tokenizer=True,
        deadline_seconds=DEADLINE_SECONDS,
        request_tokens_max=100_000_000,
        request_questions_max=1,
        organization_questions_max=1,
        worker_questions_max=1,
        verdicts_max=1,
        verdict_seconds=1.0,
    )
    async with backend_of(engine.base_url, total_seconds=DEADLINE_SECONDS) as port:
        court = Court(config, port, SystemClock(), secret=secrets.token_bytes(32))
        owner, request = OrganizationId(time_ordered_uuid()), RequestId(time_ordered_uuid())
        subject = court.subject(owner, request, content(tokens))
        await court.prepare()
        before, begun = counted_by(engine), time.perf_counter()
        decisions = await court.examine(subject, policies(questions))
        took_seconds = time.perf_counter() - begun
    used = counted_by(engine) - before
    failed = [decision.reason for decision in decisions if decision.outcome is Outcome.FAILED]
    assert not failed, failed
    return {
        "order": order.value,
        "questions": questions,
        "content_tokens": tokens,
        "evaluated_tokens": used.input,
        "cached_tokens": used.cached_input,
        "seconds": round(took_seconds, 2),
    }


async def run(engine: Engine, model: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Both orders, each number of questions and each length; then what follows for many."""
    reading = Reading.TOKEN_IDS if arguments.engine == "vllm" else Reading.TOP_LOGPROBS
    found: list[dict[str, Any]] = []
    for tokens in arguments.tokens:
        for questions in arguments.questions:
            for order in (Order.CONTENT_FIRST, Order.QUESTION_FIRST):
                found.append(
                    await measure(engine, model, reading, order, questions=questions, tokens=tokens)
                )
                sys.stderr.write(f"{found[-1]}\n")
    return {
        "bench": "judging",
        "engine": arguments.engine,
        "model": model,
        "measured": found,
        "ratios": [
            _ratio(found, tokens, questions)
            for tokens in arguments.tokens
            for questions in arguments.questions
        ],
        "computed": [_computed(found, tokens) for tokens in arguments.tokens],
    }


def _ratio(found: list[dict[str, Any]], tokens: int, questions: int) -> dict[str, Any]:
    first, other = [
        one for one in found if one["content_tokens"] == tokens and one["questions"] == questions
    ]
    return {
        "content_tokens": tokens,
        "questions": questions,
        "fewer_evaluated_tokens": round(other["evaluated_tokens"] / first["evaluated_tokens"], 2),
        "less_time": round(other["seconds"] / first["seconds"], 2),
    }


def _computed(found: list[dict[str, Any]], tokens: int) -> dict[str, Any]:
    """For a thousand questions, not measured: what each further question took, times so many."""
    rows = {
        order: [one for one in found if one["order"] == order and one["content_tokens"] == tokens]
        for order in Order
    }
    total: dict[str, float] = {}
    for order, (least, *_, most) in ((order, rows[order]) for order in Order):
        further = most["questions"] - least["questions"]
        each = (most["evaluated_tokens"] - least["evaluated_tokens"]) / further
        total[order] = least["evaluated_tokens"] + each * (COMPUTED_QUESTIONS - least["questions"])
    return {
        "content_tokens": tokens,
        "questions": COMPUTED_QUESTIONS,
        "is_computed": True,
        "fewer_evaluated_tokens": round(
            total[Order.QUESTION_FIRST] / total[Order.CONTENT_FIRST], 2
        ),
    }


def main() -> None:
    """Print a line for each measurement, or one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--engine", choices=("llama", "vllm"), default="llama")
    parser.add_argument("--questions", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--tokens", type=int, nargs="+", default=[300, 1150, 1800])
    arguments = parser.parse_args()
    with engine_of(arguments.engine) as (engine, model):
        result = asyncio.run(run(engine, model, arguments))
    sys.stdout.write(json.dumps(result, indent=None if arguments.json else 1) + "\n")


if __name__ == "__main__":
    main()
