"""Drafts on trial with a judge whose answers are known."""

import asyncio
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import Operator
from tests.support.judge import Fault, ReceivedQuestion, ScriptedJudge
from tollhouse.base.policies import DEMONSTRATION_JUDGE

RULE = 'Does it say "bread"?'
TRUE_THRESHOLD = 1_800
"""The judge below says yes much too rarely."""


async def run(operator: Operator, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    return await asyncio.to_thread(operator.json, *arguments)


async def drafted(operator: Operator, rule: str = RULE, *options: str) -> str:
    await run(operator, "org", "create", "Example Ltd")
    created = await run(operator, "policy", "create", "Bread", "--rule", rule, *options)
    return created["id"]


def write(path: Path, samples: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    return str(path)


async def test_a_draft_is_tried_on_a_text(patient: Operator, judge: ScriptedJudge) -> None:
    policy = await drafted(patient)

    found = await run(patient, "policy", "test", policy, "--text", "Some bread.")
    other = await run(patient, "policy", "test", policy, "--text", "Some wine.")

    (verdict,) = found["data"]
    assert (verdict["of"], verdict["outcome"]) == ("draft", "match")
    assert verdict["lowest_basis_points"] <= verdict["score_basis_points"]
    assert other["data"][0]["outcome"] == "no_match"
    assert judge.received[0].content == "Some bread."


async def test_draft_and_publication_are_told_apart(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    await run(patient, "policy", "publish", policy)
    await run(patient, "policy", "edit", policy, "--rule", 'Does it say "wine"?')
    file = write(
        patient.directory / "texts.jsonl",
        [{"text": "bread"}, {"text": "wine"}, {"text": "bread and wine"}, {"text": "water"}],
    )

    found = await run(patient, "policy", "backtest", policy, file)

    assert (found["texts"], found["draft_matches"], found["published_matches"]) == (4, 2, 2)
    assert [(one["line"], one["draft"], one["published"]) for one in found["disagreements"]] == [
        (1, "no_match", "match"),
        (2, "match", "no_match"),
    ]
    assert judge.most_at_once <= 8


async def test_a_rule_is_judged_without_a_policy(patient: Operator, judge: ScriptedJudge) -> None:
    await run(patient, "org", "create", "Example Ltd")
    found = await run(patient, "rule", "test", RULE, "--text", "Some bread.")

    assert [(one["of"], one["outcome"]) for one in found["data"]] == [("draft", "match")]
    assert len(judge.received) == 1


async def test_a_judge_that_fails_is_told(patient: Operator, judge: ScriptedJudge) -> None:
    policy = await drafted(patient)
    judge.fails = lambda _: Fault.ERROR_500

    found = await run(patient, "policy", "test", policy, "--text", "Some bread.")

    assert found["data"][0]["outcome"] == "failed"
    assert found["data"][0]["reason"]


async def test_a_rule_that_the_demonstration_judge_does_not_know_names_the_setting(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    judge.fails = lambda _: Fault.NEITHER_SIDE
    command = ("policy", "test", policy, "--text", "Some bread.")

    usual = await asyncio.to_thread(patient.run, *command)
    shown = await asyncio.to_thread(
        patient.run,
        *command,
        TOLLHOUSE_JUDGE__MODEL=DEMONSTRATION_JUDGE,
        TOLLHOUSE_LEDGER__IS_SANDBOX="true",
    )

    assert "[judge]" not in usual.stdout + usual.stderr
    assert "the demonstration judge of this trial knows only" in shown.stderr + shown.stdout
    assert "[judge] of tollhouse.toml" in shown.stderr + shown.stdout


def miscalibrated(question: ReceivedQuestion) -> float:
    """Knows the answer, and says so much too low: what should match scores from 1,800 on."""
    level = re.search(r"level=(\d+)", question.content)
    assert level is not None
    return int(level[1]) / 10_000


def labelled(count: int, seed: int) -> list[dict[str, Any]]:
    """Half of them should match; the scores of a tenth are on the wrong side."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    samples: list[dict[str, Any]] = []
    for number in range(count):
        label = number % 2 == 0
        is_high = label if chance.random() < 0.9 else not label
        level = chance.randrange(1_900, 3_500) if is_high else chance.randrange(100, 1_700)
        samples.append({"text": f"level={level} text {number}", "label": label})
    return samples


def f1_of(samples: list[dict[str, Any]], threshold: int) -> float:
    matched = [
        (int(re.findall(r"\d+", one["text"])[0]) >= threshold, one["label"]) for one in samples
    ]
    right = sum(found and label for found, label in matched)
    wrong = sum(found != label for found, label in matched)
    return 2 * right / (2 * right + wrong) if right else 0.0


async def test_a_miscalibrated_judge_gets_its_threshold_back(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    judge.answers = miscalibrated
    samples = labelled(240, seed=3)
    fitted, held_out = samples[:120], samples[120:]
    file = write(patient.directory / "labelled.jsonl", fitted)
    picture = patient.directory / "curve.png"

    found = await run(patient, "policy", "calibrate", policy, file, "--plot", str(picture))

    threshold = found["best_f1"]["match_threshold_basis_points"]
    assert threshold == pytest.approx(TRUE_THRESHOLD, abs=200)
    assert found["present"]["f1"] == 0.0
    assert f1_of(held_out, 5_000) == 0.0
    assert f1_of(held_out, threshold) > 0.8
    assert found["auc"]["lowest"] > 0.5
    assert found["warnings"] == []
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = await asyncio.to_thread(patient.run, "policy", "calibrate", policy, file)
    assert "false positives" in shown.stdout


async def test_few_positives_are_warned_of(patient: Operator, judge: ScriptedJudge) -> None:
    policy = await drafted(patient)
    judge.answers = miscalibrated
    file = write(patient.directory / "labelled.jsonl", labelled(20, seed=5))

    found = await run(patient, "policy", "calibrate", policy, file)

    assert "With fewer than 30" in found["warnings"][0]


def test_without_a_judge_nobody_is_asked(patient: Operator) -> None:
    patient.run("org", "create", "Example Ltd")
    policy = patient.json("policy", "create", "Bread", "--rule", RULE)["id"]

    refused = patient.run("policy", "test", policy, "--text", "bread", "--json", exit_code=1)

    assert refused.error["code"] == "no_judge"


@pytest.mark.parametrize("line", ["{", '{"text": 1}', '{"label": true}', ""])
def test_a_file_that_is_none_is_refused_with_its_line(patient: Operator, line: str) -> None:
    file = patient.directory / "texts.jsonl"
    file.write_text(f"{line}\n", encoding="utf-8")

    refused = patient.run(
        *("policy", "backtest", "pol_01890a5dac96774bbcceb302099a8057", str(file)), exit_code=2
    )

    assert "texts.jsonl" in refused.stderr


def test_a_rule_is_linted_alone_or_as_a_draft(patient: Operator) -> None:
    patient.run("org", "create", "Example Ltd")
    policy = patient.json("policy", "create", "Bread", "--rule", "Is it appropriate?")["id"]

    alone = patient.json("rule", "lint", "Say bread")
    draft = patient.json("policy", "lint", policy)

    assert [one["weakness"] for one in alone["data"]] == ["not_a_question"]
    assert [one["weakness"] for one in draft["data"]] == ["vague"]
    assert "Nothing found" in patient.run("rule", "lint", RULE).stdout
    patient.run("policy", "lint", exit_code=2)


def test_what_was_never_published_has_no_what_if(patient: Operator) -> None:
    patient.run("org", "create", "Example Ltd")
    policy = patient.json("policy", "create", "Bread", "--rule", RULE)["id"]

    assert patient.failure_code("policy", "whatif", policy) == "policy_never_published"
    patient.run("policy", "publish", policy)
    nothing = patient.json("policy", "whatif", policy, "--threshold", "7000")
    assert (nothing["scored"], nothing["data"][0]["matches_max"]) == (0, 0)
