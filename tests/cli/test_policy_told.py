"""What people are told of drafts on trial, beside the documents that programs read."""

import asyncio
import re
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.cli.commands import Operator, new_project, refusal
from tests.cli.test_policy_trying import RULE, drafted, labelled, miscalibrated, run, write
from tests.judge.cases import asks_for
from tests.support.judge import Fault, ScriptedJudge
from tollhouse.base.ids import (
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    parse_policy_id,
    time_ordered_uuid,
)
from tollhouse.base.policies import Direction, EvaluationOutcome, Mode
from tollhouse.cli.policy.calibrate import answered
from tollhouse.cli.policy.sample_texts import LabelledSample
from tollhouse.cli.session import Session
from tollhouse.decisions import store
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision
from tollhouse.evaluation.errors import FAILURES
from tollhouse.evaluation.types import EvaluationDecision, FailureReason, Score

UNDECIDED = Score(
    basis_points=6_000,
    lowest_basis_points=4_000,
    highest_basis_points=7_000,
    coverage_basis_points=9_000,
)


async def told(operator: Operator, *arguments: str, exit_code: int = 0) -> str:
    """What is said to somebody who reads it."""
    ended = await asyncio.to_thread(operator.run, *arguments, exit_code=exit_code)
    return ended.stdout + ended.stderr


def test_every_failure_has_a_sentence() -> None:
    assert set(FAILURES) == set(FailureReason)


async def test_a_test_says_why_nothing_was_decided(patient: Operator, judge: ScriptedJudge) -> None:
    policy = await drafted(patient)
    judge.fails = lambda _: Fault.UNDECIDED

    shown = await told(patient, "policy", "test", policy, "--text", "Some bread.")

    assert "undecided: the threshold lies between the bounds of the score" in shown


async def test_lines_have_the_numbers_that_an_editor_gives_them(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    await run(patient, "policy", "publish", policy)
    await run(patient, "policy", "edit", policy, "--rule", 'Does it say "wine"?')
    file = patient.directory / "texts.jsonl"
    file.write_text('\n\n{"text": "water"}\n \n{"text": "bread"}\n', encoding="utf-8")

    found = await run(patient, "policy", "backtest", policy, str(file))

    assert [question.content for question in judge.received].count("bread") == 2
    assert [(one["line"], one["text"]) for one in found["disagreements"]] == [(5, "bread")]


async def test_a_backtest_says_what_it_compared(patient: Operator, judge: ScriptedJudge) -> None:
    policy = await drafted(patient)
    backtest = ("policy", "backtest", policy)
    file = write(patient.directory / "texts.jsonl", [{"text": "bread"}, {"text": "water"}])

    alone = await told(patient, *backtest, file)
    await run(patient, "policy", "publish", policy)
    alike = await told(patient, *backtest, file)
    judge.fails = lambda question: Fault.ERROR_500 if question.content == "water" else None
    failed = await told(patient, *backtest, file)

    assert "no published version" in alone
    assert "The draft and the published version decide every text alike." in alike
    assert "unreachable (2 times): the judge could not be reached, or failed" in failed


async def test_a_calibration_names_what_each_threshold_is_for(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    judge.answers = miscalibrated
    file = write(patient.directory / "labelled.jsonl", labelled(40, seed=5))
    calibrate = ("policy", "calibrate", policy, file, "--false-positive-rate-max", "0.15")

    found = await run(patient, *calibrate)
    shown = await told(patient, *calibrate)

    named = {
        "the draft's threshold": found["present"],
        "best F1": found["best_f1"],
        "most recall, 15 % false positives": found["best_recall"],
    }
    for purpose, threshold in named.items():
        recall = threshold["recall"]
        share = f"{recall['value']:.2f} ({recall['lowest']:.2f}..{recall['highest']:.2f})"
        (row,) = re.findall(f"^{purpose} .*$", shown, re.MULTILINE)
        assert re.search(
            rf" {threshold['match_threshold_basis_points']} +{threshold['f1']:.2f} ", row
        )
        assert share in row
    assert "With fewer than 30" in shown


async def test_a_threshold_that_there_is_not_is_explained(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    judge.answers = miscalibrated
    innocent, wanted = ({"text": f"level={level}", "label": level < 500} for level in (900, 100))
    both = write(patient.directory / "both.jsonl", [innocent, wanted])
    innocents = write(patient.directory / "innocents.jsonl", [innocent])

    troubled = await told(patient, "policy", "calibrate", policy, both)
    unwanted = await told(patient, "policy", "calibrate", policy, innocents)

    assert "No threshold has at most 1 % false positives" in troubled
    assert re.search("^most recall", troubled, re.MULTILINE) is None
    assert re.search("^best F1 ", troubled, re.MULTILINE)
    assert "answered for no text that should match" in unwanted
    assert re.search("^best F1 ", unwanted, re.MULTILINE) is None


async def test_a_calibration_without_answers_says_why(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    judge.fails = lambda _: Fault.LOW_COVERAGE
    file = write(patient.directory / "labelled.jsonl", [{"text": "bread", "label": True}])

    refused = await told(patient, "policy", "calibrate", policy, file, exit_code=1)

    assert "uncovered: yes and no together are too improbable" in refused


def test_a_score_counts_for_other_thresholds_than_the_one_it_leaves_open() -> None:
    policy = asks_for("bread", threshold_basis_points=5_000)
    other_part = Score(
        basis_points=100,
        lowest_basis_points=90,
        highest_basis_points=110,
        coverage_basis_points=9_000,
    )
    failed = [
        EvaluationDecision(
            policy=policy, outcome=EvaluationOutcome.FAILED, reason=reason, score=score
        )
        for reason, score in (
            (FailureReason.UNDECIDED, UNDECIDED),
            (FailureReason.UNDECIDED, other_part),
            (FailureReason.TIMED_OUT, other_part),
        )
    ]
    samples = [LabelledSample(text="bread", label=True)] * len(failed)

    found = answered(samples, failed, policy.match_threshold_basis_points)

    assert found.scores == [UNDECIDED]
    assert found.failures == [FailureReason.UNDECIDED, FailureReason.TIMED_OUT]


@pytest.mark.parametrize("place", ["missing/curve.png", "labelled.jsonl/curve.png", "."])
def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_asked(
    patient: Operator, place: str
) -> None:
    file = write(patient.directory / "labelled.jsonl", [{"text": "bread", "label": True}])
    policy = "pol_01890a5dac96774bbcceb302099a8057"

    refused = refusal("policy", "calibrate", policy, file, "--plot", f"{patient.directory}/{place}")

    assert "--plot" in refused


async def test_a_picture_that_is_there_stays_until_another_is_drawn(
    patient: Operator, judge: ScriptedJudge
) -> None:
    policy = await drafted(patient)
    file = write(patient.directory / "labelled.jsonl", [{"text": "bread", "label": True}])
    old, new = patient.directory / "old.png", patient.directory / "new.png"
    old.write_bytes(b"a curve")
    judge.fails = lambda _: Fault.ERROR_500

    for picture in (old, new):
        await told(
            patient, *("policy", "calibrate", policy, file, "--plot", str(picture)), exit_code=1
        )

    assert old.read_bytes() == b"a curve"
    assert not new.exists()


def failure_of(policy: str, organization_id: OrganizationId) -> EvaluationRecord:
    found = parse_policy_id(policy)
    assert found is not None
    decision = PolicyDecision(
        policy_id=found,
        version=1,
        mode=Mode.MONITORING,
        outcome=EvaluationOutcome.FAILED,
        threshold=5_000,
        reason="unreachable",
    )
    return EvaluationRecord(
        organization_id=organization_id,
        request_id=RequestId(time_ordered_uuid()),
        project_id=ProjectId(uuid4()),
        api_key_id=ProjectKeyId(uuid4()),
        direction=Direction.REQUEST,
        mode=Mode.MONITORING,
        evaluated_at=datetime.now(UTC),
        judging_ms=1.0,
        decisions=(decision,),
    )


def test_what_failed_is_counted_where_nothing_can_be_told(patient: Operator) -> None:
    patient.run("org", "create", "Example Ltd")
    policy = patient.json("policy", "create", "Bread", "--rule", RULE)["id"]
    patient.run("policy", "publish", policy)

    async def fail_twice(session: Session) -> int:
        owner = await session.organization(None)
        failures = [failure_of(policy, owner.id) for _ in range(2)]
        return await store.insert(session.database, failures)

    quiet = patient.run("policy", "whatif", policy).stdout
    assert patient.do(fail_twice) == 2
    shown = patient.run("policy", "whatif", policy).stdout

    assert patient.json("policy", "whatif", policy)["failures"] == 2
    assert "this version judged nothing" in quiet
    assert "Version 1: 0 scores and 2 failures in 30 days." in shown
    assert "There are no scores" in shown
    assert "matches_min" not in shown


def test_who_publishes_what_sees_nothing_is_told(patient: Operator) -> None:
    project = new_project(patient)
    made = patient.json("policy", "create", "n", "--rule", RULE)["id"]

    said = patient.run("policy", "publish", made).stdout
    edit, publish = said.splitlines()[-2:]
    assert "applies only to requests that name it in `policy_ids`" in said
    patient.bash(edit)
    quiet = patient.bash(publish).stdout

    assert "policy_ids`" not in quiet
    assert made in patient.run("policy", "effective", project).stdout


def test_who_publishes_what_is_paused_is_told(patient: Operator) -> None:
    new_project(patient)
    scope = ("--scope", "organization")
    made = patient.json("policy", "create", "n", "--rule", RULE, *scope)["id"]
    applying = patient.run("policy", "publish", made).stdout
    patient.run("policy", "pause", made)

    said = patient.run("policy", "publish", made).stdout
    resumed = patient.bash(said.splitlines()[-1]).stdout

    assert "applies after you resume it" in said
    assert "resume" not in applying
    assert ["state", "monitoring"] in [line.split() for line in resumed.splitlines()]


def test_a_dubious_early_end_is_warned_of(patient: Operator) -> None:
    new_project(patient)
    rule = "Does the answer lack a warning?"
    made = patient.json("policy", "create", "n", "--rule", rule)["id"]
    patient.json("policy", "edit", made, "--end-early")

    warned = patient.run("policy", "publish", made).stdout

    assert "Warning: the rule seems to ask whether something is missing" in warned
    patient.json("policy", "edit", made, "--no-end-early")
    differing = {one["field"]: one for one in patient.json("policy", "diff", made)["fields"]}
    assert differing["ends_answer_early"]["published"] is True


def test_a_diff_has_the_lines_of_the_rule_and_the_other_fields(patient: Operator) -> None:
    project = new_project(patient)
    rule = "Does the text name\na person?"
    made = patient.json("policy", "create", "No names", "--rule", rule)["id"]
    first = patient.json("policy", "diff", made)
    patient.json("policy", "publish", made)
    same = patient.run("policy", "diff", made).stdout
    changed = ("--rule", "Does the text name\na \x1bplace?", "--scope", "projects")
    patient.json("policy", "edit", made, *changed, "--project", project)
    edited = patient.json("policy", "diff", made)

    assert first["rule"].splitlines()[2:] == [
        "@@ -0,0 +1,2 @@",
        "+Does the text name",
        "+a person?",
    ]
    assert [one["field"] for one in first["fields"]] == ["direction", "mode", "scope"]
    assert same == "The draft equals the published version.\n"
    assert edited["fields"] == [
        {"field": "scope", "published": "unattached", "draft": "projects"},
        {"field": "project_ids", "published": [], "draft": [project]},
        {"field": "match_threshold_basis_points", "published": 5000, "draft": None},
    ]
    assert patient.run("policy", "diff", made).stdout.splitlines() == [
        *("--- version 1", "+++ draft, revision 3", "@@ -1,2 +1,2 @@"),
        *(" Does the text name", "-a person?", r"+a \x1bplace?", ""),
        "field                          published    draft",
        "scope                          unattached   projects",
        f"project_ids                    -            {project}",
        "match_threshold_basis_points   5000         -",
    ]
