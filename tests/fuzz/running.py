"""A fuzzing run of one target in a process of its own, because libFuzzer ends its process."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.fuzz import corpus

REPOSITORY: Final = Path(__file__).parents[2]
INPUT_BYTES_MAX: Final = 2_048
"""Bounds are tested elsewhere: what fuzzing finds is in short inputs."""
INPUT_SECONDS_MAX: Final = 20
MEMORY_MEGABYTES_MAX: Final = 2_048
EXIT_SECONDS_MAX: Final = 300
_EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_COVERED: Final = re.compile(r"cov: (\d+)")


@dataclass(frozen=True, kw_only=True)
class FuzzResult:
    """What a run did. A finding is the end of libFuzzer's report, with the input in base64."""

    target: str
    seconds: int
    executions: int
    covered: int
    inputs: int
    findings: list[str]


def fuzz(target: str, *, seconds: int, is_kept: bool = False) -> FuzzResult:
    """Run a target for some seconds, from its seeds and the inputs of earlier runs."""
    with TemporaryDirectory(prefix="fuzz-") as folder:
        inputs = _folder(folder, "inputs")
        for number, data in enumerate(corpus.kept(target)):
            (inputs / f"kept-{number}").write_bytes(data)
        ended = _child(
            target,
            folder,
            str(inputs),
            f"-max_total_time={seconds}",
            f"-timeout={INPUT_SECONDS_MAX}",
            f"-rss_limit_mb={MEMORY_MEGABYTES_MAX}",
            "-print_final_stats=1",
            seconds=seconds,
        )
        findings = [] if ended.returncode == 0 else [f"{ended.stdout}{ended.stderr}"[-6_000:]]
        if is_kept and not findings:
            corpus.keep(target, _merged(target, folder, inputs))
        executed, covered = _EXECUTED.search(ended.stderr), _COVERED.findall(ended.stderr)
        return FuzzResult(
            target=target,
            seconds=seconds,
            executions=int(executed[1]) if executed else 0,
            covered=int(covered[-1]) if covered else 0,
            inputs=len(list(inputs.iterdir())),
            findings=findings,
        )


def _merged(target: str, folder: str, inputs: Path) -> list[bytes]:
    """Return the fewest inputs that reach the same code."""
    merged = _folder(folder, "merged")
    ended = _child(target, folder, "-merge=1", str(merged), str(inputs), seconds=EXIT_SECONDS_MAX)
    found = [path.read_bytes() for path in merged.iterdir()]
    # libFuzzer says nothing by its status if the processes that it starts fail.
    if not found:
        raise RuntimeError(f"{target}: no input was merged: {ended.stderr[-2_000:]}")
    return found


def _child(
    target: str, folder: str, *arguments: str, seconds: int
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (
            *(sys.executable, "-m", "tests.fuzz.child", target, *arguments),
            *(f"-max_len={INPUT_BYTES_MAX}", f"-artifact_prefix={folder}/"),
        ),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds + EXIT_SECONDS_MAX,
        check=False,
    )


def _folder(parent: str, name: str) -> Path:
    folder = Path(parent) / name
    folder.mkdir()
    return folder
