"""Licences of what the wheel contains, and workflows that run the stages that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import nightly
from tools.notice import Bundled, is_accepted, notice

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
STAGES = re.compile(r"^readonly (?:LANDING|EXTRAS)=\(([^)]*)\)", re.MULTILINE)


@pytest.mark.parametrize(
    ("stated", "accepted"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND PSF-2.0", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-only", False),
        (None, False),
    ],
)
def test_a_licence_is_accepted_if_all_its_parts_are(stated: str | None, accepted: bool) -> None:
    assert is_accepted(stated) is accepted


def test_a_package_is_named_with_its_version_and_text() -> None:
    written = notice([Bundled(name="example", version="1.2", licence="MIT", text="Be free.\n")])

    assert "example 1.2 (MIT)" in written
    assert written.endswith("\nBe free.\n")


def test_the_notice_names_what_the_console_is_built_from() -> None:
    written = (ROOT / "NOTICE").read_text(encoding="utf-8")

    for name in ("react", "react-dom", "echarts", "zrender", "openapi-fetch", "zensical"):
        assert re.search(rf"^{name} [\d.]+ \(", written, re.MULTILINE)


def stages() -> set[str]:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    return {name for found in STAGES.findall(script) for name in re.findall(r"\w+", found)}


def commands(path: Path) -> list[str]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    return [line for step in steps for line in step.get("run", "").splitlines()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_stages_that_exist(path: Path) -> None:
    for line in commands(path):
        if line.startswith("bash .ci/run ") and "nightly" not in line:
            assert set(line.split()[2:]) <= stages()


def test_the_check_and_the_night_are_run_whole() -> None:
    folder = ROOT / ".github" / "workflows"
    night = yaml.safe_load((folder / "nightly.yaml").read_text(encoding="utf-8"))

    assert "bash .ci/run" in commands(folder / "check.yaml")
    run = night["jobs"]["part"]["strategy"]["matrix"]["part"]
    assert sorted(run) == sorted({name.partition(" ")[0] for name in nightly.parts()})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_job_has_an_end_and_the_least_permissions(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert workflow["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())
