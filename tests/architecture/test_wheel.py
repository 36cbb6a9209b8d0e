"""What is shipped: a wheel of known files that is built the same twice, and few packages."""

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from tools import locks, sbom

ROOT = Path(__file__).parents[2]
PACKAGES_MAX = 35
ONLY_ELSEWHERE = {"async-timeout"}
"""Locked for older versions of Python alone."""
SUFFIXES = {
    *("", ".css", ".gz", ".html", ".ico", ".js", ".json", ".png", ".py", ".sql", ".svg", ".txt"),
    *(".typed", ".webp", ".woff2"),
}


def built(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(folder.iterdir())


@pytest.mark.guarantee("T47")
def test_a_wheel_has_known_files_and_is_built_the_same_twice(tmp_path: Path) -> None:
    wheels = [built(tmp_path / each) for each in ("first", "second")]

    with ZipFile(wheels[0]) as wheel:
        names = [Path(name) for name in wheel.namelist()]
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    assert {name.suffix for name in names} <= SUFFIXES
    assert {name.parts[0].partition("-")[0] for name in names} == {"tollhouse"}


@pytest.mark.guarantee("T47")
def test_no_package_runs_code_when_python_starts() -> None:
    pins = locks.read((ROOT / "requirements" / "runtime.txt").read_text("utf-8"))
    files: list[str] = []
    for name in pins.keys() - ONLY_ELSEWHERE:
        found = list(map(str, distribution(name).files or []))
        assert found, name
        files += found

    assert [each for each in files if each.endswith(".pth")] == []


@pytest.mark.guarantee("T47")
def test_the_lock_has_at_most_35_packages_and_the_hash_of_each() -> None:
    pins = locks.read((ROOT / "requirements" / "runtime.txt").read_text("utf-8"))

    assert 0 < len(pins) <= PACKAGES_MAX
    assert all(pin.is_hashed for pin in pins.values())


@pytest.mark.guarantee("T47")
def test_the_bill_of_materials_names_every_locked_package_with_its_hashes() -> None:
    lock = (ROOT / "requirements" / "runtime.txt").read_text("utf-8")

    listed = sbom.document("tollhouse", "1", lock)["components"]

    pins = locks.read(lock)
    assert {part["name"]: part["version"] for part in listed} == {
        name: pin.version for name, pin in pins.items()
    }
    assert sum(len(part["hashes"]) for part in listed) == lock.count("--hash=sha256:")
