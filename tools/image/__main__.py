"""`python -m tools.image`: build deploy/Dockerfile, run the image, and record bases and size.

`bash .ci/run image` runs it in namespaces of its own, with which all mounts, images, containers and
processes end.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from tollhouse.base.clock import SystemClock
from tools import long_runs
from tools.image import bases
from tools.image.bases import Base
from tools.image.programs import ProgramFailed, run
from tools.image.walk import walk

DOCKERFILE: Final = long_runs.ROOT / "deploy" / "Dockerfile"
EVIDENCE: Final = long_runs.ROOT / "docs" / "evidence" / "image.jsonl"
IMAGE: Final = "localhost/tollhouse"
BUILD_SECONDS_MAX: Final = 1_200
MEGABYTE: Final = 1_000_000


class ImageRun(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the evidence: an image that was built and has run."""

    date: str
    commit: str
    bases: dict[str, str]
    base_megabytes: int
    megabytes: int
    seconds: int
    passed: int


def main() -> int:
    """Build and run the image; return 1 if something failed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = bases.obtain(DOCKERFILE.read_text(encoding="utf-8"), Path(folder))
            _build(found)
            passed = walk(IMAGE, Path(folder))
        except ProgramFailed as failure:
            print(f"{failure}\n1 failed", flush=True)
            return 1
    _record(found, passed, time.monotonic() - began)
    return 0


def _build(found: dict[str, Base]) -> None:
    chosen = [f"--build-arg={name}={base.image}" for name, base in found.items()]
    build = ("buildah", "bud", "--isolation=chroot", "--format=docker", "--pull-never", *chosen)
    where = (f"--file={DOCKERFILE}", f"--tag={IMAGE}", long_runs.ROOT)
    run(*build, *where, seconds_max=BUILD_SECONDS_MAX)


def _record(found: dict[str, Base], passed: int, seconds: float) -> None:
    line = ImageRun(
        date=SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=long_runs.current_commit(),
        bases={name: base.origin for name, base in found.items()},
        base_megabytes=_megabytes(found["PYTHON_IMAGE"].image),
        megabytes=_megabytes(IMAGE),
        seconds=round(seconds),
        passed=passed,
    )
    with EVIDENCE.open("ab") as evidence:
        evidence.write(msgspec.json.encode(line) + b"\n")
    print(f"{line.megabytes} MB, of which the base has {line.base_megabytes}; {passed} passed")


def _megabytes(image: str) -> int:
    return int(run("podman", "image", "inspect", "--format", "{{.Size}}", image)) // MEGABYTE


if __name__ == "__main__":
    sys.exit(main())
