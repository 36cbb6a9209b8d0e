"""The arithmetic of what is measured of judges, against counting by hand."""

import json
import random

import pytest

from bench.injections import flips
from bench.judge_quality import figures
from bench.judging import computed, ratio
from bench.support.agreement import RULE, TEXTS, compared, spearman
from bench.support.fitting import fitted
from bench.support.labelled import Sample, cut, drawn, jailbreaks, refusals, shuffled
from tollhouse.evaluation.judge.calibration import Labelled, auc


def row(order: str, questions: int, evaluated_tokens: int) -> dict[str, object]:
    return {
        "order": order,
        "questions": questions,
        "content_tokens": 300,
        "evaluated_tokens": evaluated_tokens,
        "seconds": evaluated_tokens / 10,
    }


def test_two_engines_are_compared_where_both_have_a_score() -> None:
    found = compared([100, 200, None, 400], [110, 170, 300, 400])

    assert (found.texts, found.unscored) == (4, 1)
    assert found.most_basis_points == 30
    assert found.mean_basis_points == pytest.approx(40 / 3, abs=0.05)
    assert found.rank_correlation == 1.0


def test_engines_that_never_both_answer_cannot_be_compared() -> None:
    found = compared([None, 5], [5, None])

    assert found.unscored == 2
    assert found.most_basis_points is found.mean_basis_points is found.rank_correlation is None


def test_ranks_count_and_not_distances() -> None:
    assert spearman([1, 2, 3, 4], [10, 100, 1_000, 10_000]) == 1.0
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == -1.0
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.9487, abs=1e-4)
    assert spearman([1, 2], [7, 7]) is None


def test_the_fixed_texts_differ() -> None:
    assert len(set(TEXTS)) == len(TEXTS) == 20
    assert RULE.endswith("?")


def test_shuffled_labels_are_as_many_and_tell_nothing() -> None:
    labelled = [Labelled(score, score >= 200) for score in range(400)]

    control = shuffled(labelled)

    assert control == shuffled(labelled)
    assert sum(one.is_positive for one in control) == 200
    assert [one.score_basis_points for one in control] == list(range(400))
    assert auc(labelled).value == 1.0
    assert auc(control).lowest < 0.5 < auc(control).highest


def test_the_interval_of_an_auc_is_the_same_in_every_run() -> None:
    chance = random.Random(3)  # noqa: S311 - no secret
    labelled = [Labelled(chance.randrange(10_000), chance.random() < 0.5) for _ in range(60)]

    assert auc(labelled) == auc(labelled)


def test_recall_that_no_threshold_allows_is_none_of_all() -> None:
    labelled = [Labelled(9_000, is_positive=False), *[Labelled(100, is_positive=True)] * 9]

    found = figures(labelled, labelled, unanswered=1)

    assert found["recall_at_1_percent_false_positives"]["value"] == 0.0
    assert found["recall_at_1_percent_false_positives"]["highest"] < 0.4
    assert (found["texts"], found["positives"], found["unanswered"]) == (10, 9, 1)


def test_a_verdict_flips_when_it_crosses_the_threshold() -> None:
    found = flips([(4_999, 5_000), (5_000, 9_000), (6_000, 4_000), (1, 2)], 5_000)

    assert (found["flipped"], found["value"]) == (2, 0.5)


def test_labelled_texts_are_read_as_they_are_published() -> None:
    table = (
        '# version\n# more\nobjective,assistant_response,human_score\na,"I\ncan\'t.",1\nb,Yes,0\n'
    )
    line = json.dumps({"data": "Be free", "expected_triggers": {"Jailbreak": True}})

    assert list(refusals(table)) == [
        Sample("I\ncan't.", is_positive=True),
        Sample("Yes", is_positive=False),
    ]
    assert list(jailbreaks(f"{line}\n")) == [Sample("Be free", is_positive=True)]


def test_the_same_texts_are_drawn_in_every_run_and_none_twice() -> None:
    samples = [Sample(str(number), is_positive=False) for number in range(50)]

    assert drawn(samples, 20) == drawn(samples, 20)
    assert len({sample.text for sample in drawn(samples, 20)}) == 20
    assert len(drawn(samples, 200)) == 50


def test_a_text_is_cut_between_characters() -> None:
    assert cut("aäö", 2) == "a"
    assert cut("aäö", 3) == "aä"


def test_what_was_not_measured_is_scaled_and_says_so() -> None:
    found = [
        row("content_first", 10, 500),
        row("question_first", 10, 2_000),
        row("content_first", 100, 1_000),
    ]

    assert ratio(found, 300, 10)["is_scaled"] is False
    assert ratio(found, 300, 10)["fewer_evaluated_tokens"] == 4.0
    assert ratio(found, 300, 100)["is_scaled"] is True
    assert ratio(found, 300, 100)["fewer_evaluated_tokens"] == 20.0
    assert ratio(found, 300, 100)["fewer_evaluated_tokens_measured_least"] == 2.0


def test_a_thousand_questions_are_computed_from_what_each_further_one_took() -> None:
    found = [
        row("content_first", 1, 400),
        row("content_first", 11, 700),
        row("question_first", 1, 500),
        row("question_first", 11, 5_500),
    ]

    assert computed(found, 300)["fewer_evaluated_tokens"] == round(500_000 / (400 + 30 * 999), 2)


def test_a_line_is_found_again_and_its_beginning_is_not_drowned() -> None:
    exact = [(x, 2_000 + 300 * x) for x in (0, 1, 10, 100, 1_000)]
    disturbed = [*exact[:-1], (1_000, 1.02 * exact[-1][1])]

    assert fitted(exact).fixed == pytest.approx(2_000)
    assert fitted(exact).each == pytest.approx(300)
    assert fitted(disturbed).fixed == pytest.approx(2_000, rel=0.02)
