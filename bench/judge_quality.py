"""`python -m bench.judge_quality [--json]`: a real model as judge of texts that people labelled.

SmolLM2-135M-Instruct on llama.cpp is far too small to judge. It stands here for the way from a
labelled text to a figure with its interval, and every figure stands beside what chance gives:
an AUC of 0.5, the same scores under shuffled labels, and what the length of a text alone would
tell. Long texts are cut at the judge's window, or before with `--bytes-max`.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from bench.support import evaluators, labelled
from bench.support.evaluators import EngineEvaluator
from bench.support.labelled import Set
from tests.journeys.engine_customer import counted_by
from tollhouse.evaluation.judge import calibration
from tollhouse.evaluation.judge.calibration import Interval, Labelled
from tollhouse.evaluation.types import PromptOrder

TEXTS_MAX: Final = 200
WINDOW_BYTES: Final = 4_992
"""What one window of this judge holds, by the estimate of three bytes to a token."""
FALSE_POSITIVES_MAX: Final = 0.01
NO_CLAIM: Final = "No accuracy is claimed from this model: it is too small to judge."


async def scored(bench: EngineEvaluator, one: Set, texts: Sequence[str]) -> list[int | None]:
    """One after another; nothing where the judge had no answer that counts."""
    found = [await bench.score(evaluators.saying(text, one.direction), one.rule) for text in texts]
    return [None if score is None else score.basis_points for score in found]


async def measure(
    bench: EngineEvaluator, one: Set, *, texts: int, bytes_max: int
) -> dict[str, Any]:
    """Figures of one set."""
    samples = labelled.drawn(one.samples, texts)
    read = [labelled.cut(sample.text, bytes_max) for sample in samples]
    (empty,) = await scored(bench, one, [""])
    scores = await scored(bench, one, read)
    answered = [
        (score, sample, text)
        for score, sample, text in zip(scores, samples, read, strict=True)
        if score is not None
    ]
    found = [Labelled(score, sample.is_positive) for score, sample, _ in answered]
    lengths = [Labelled(len(text.encode()), sample.is_positive) for _, sample, text in answered]
    return {
        "set": one.name,
        "question": one.rule,
        "labelled": len(one.samples),
        "cut": sum(text != sample.text for text, sample in zip(read, samples, strict=True)),
        "yes_bias_on_empty_basis_points": empty,
    } | figures(found, lengths, unanswered=len(samples) - len(found))


def figures(
    found: Sequence[Labelled], lengths: Sequence[Labelled], *, unanswered: int
) -> dict[str, Any]:
    """What the scores tell, beside what tells nothing."""
    best = calibration.best_recall(
        calibration.curve(found), false_positive_rate_max=FALSE_POSITIVES_MAX
    )
    positives = sum(one.is_positive for one in found)
    return {
        "texts": len(found),
        "positives": positives,
        "unanswered": unanswered,
        "auc": _rounded(calibration.auc(found)),
        "auc_of_chance": 0.5,
        "auc_of_shuffled_labels": _rounded(calibration.auc(labelled.shuffled(found))),
        "auc_of_length": _rounded(calibration.auc(lengths)),
        "recall_at_1_percent_false_positives": _rounded(
            best.recall if best else calibration.wilson(0, positives)
        ),
    }


def _rounded(interval: Interval) -> dict[str, float]:
    return {name: round(value, 3) for name, value in asdict(interval).items()}


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Every set, as Tollhouse asks: content first."""
    sets = labelled.sets()
    with evaluators.judging_engine(arguments.engine) as judging:
        before, begun = counted_by(judging.engine), time.perf_counter()
        async with evaluators.opened(judging, PromptOrder.CONTENT_FIRST) as bench:
            measured: list[dict[str, Any]] = []
            for one in sets:
                measured.append(
                    await measure(bench, one, texts=arguments.texts, bytes_max=arguments.bytes_max)
                )
                sys.stderr.write(f"{measured[-1]}\n")
        used = counted_by(judging.engine) - before
        return {
            "bench": "judge_quality",
            "engine": arguments.engine,
            "model": judging.model,
            "sets": measured,
            "evaluated_tokens": used.input,
            "seconds": round(time.perf_counter() - begun),
            "load_average": round(os.getloadavg()[0], 1),
            "claim": NO_CLAIM,
        }


def main() -> None:
    """Print one JSON object as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.judge_quality")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--engine", choices=("llama", "vllm"), default="llama")
    parser.add_argument("--texts", type=int, default=TEXTS_MAX, help="of each set at most")
    parser.add_argument("--bytes-max", type=int, default=WINDOW_BYTES, help="of each text")
    arguments = parser.parse_args()
    result = asyncio.run(run(arguments))
    sys.stdout.write(f"{NO_CLAIM}\n")
    sys.stdout.write(json.dumps(result, indent=None if arguments.json else 1) + "\n")


if __name__ == "__main__":
    main()
