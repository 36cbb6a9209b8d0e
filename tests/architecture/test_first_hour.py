"""The nightly first hour finds its commands in the pages, and keeps no key in its record."""

from pathlib import Path

from tests.cli.documents import blocks, read
from tools.first_hour import README, StepFailure, User, build_commands, take


def test_the_pages_have_what_the_steps_paste() -> None:
    build, wheel, *_ = build_commands(read("CONTRIBUTING.md"))

    assert build.startswith("make setup ")
    assert "pip wheel" in wheel
    assert ".whl[demo]" in blocks(README, "")[0]
    assert len(blocks(README, "python")) == 1


def test_a_failed_step_is_red_and_its_keys_are_not_kept(tmp_path: Path) -> None:
    user = User(home=tmp_path, environment={})

    def fail(_: User) -> str:
        raise StepFailure(f"401 for thp_eu1_abc in {tmp_path}/empty")

    run = take("a step", fail, user)

    assert (run.outcome, run.detail) == ("red", "StepFailure: 401 for HIDDEN in /empty")
