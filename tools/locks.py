"""`python -m tools.locks`: check that the locks fit pyproject.toml, without a network.

It finds dependencies that are missing, outside of their range or no longer required, as after a
forgotten `make lock`. Only the resolver can check a whole lock.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
IMAGE_EXTRAS = ("archive", "import", "otel")
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)")
WANTED_DIRECTLY = re.compile(r"^\s+#(?: via)?\s+tollhouse \(pyproject\.toml", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One locked package. `is_direct` means that pyproject.toml required it when it was locked."""

    name: str
    version: str
    is_hashed: bool
    is_direct: bool


def main() -> int:
    """Print every fault and return 1 if there is one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime, image, dev = (
        (ROOT / "requirements" / name).read_text(encoding="utf-8")
        for name in ("runtime.txt", "image.txt", "dev.txt")
    )
    dependencies: list[str] = project["project"]["dependencies"]
    group: list[str] = project["dependency-groups"]["dev"]
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    shipped = dependencies + [asked for name in IMAGE_EXTRAS for asked in extras[name]]
    faults = [
        *(f"requirements/runtime.txt: {fault}" for fault in faults_of(runtime, dependencies)),
        *(f"requirements/image.txt: {fault}" for fault in faults_of(image, shipped)),
        *(f"requirements/dev.txt: {fault}" for fault in faults_of(dev, dependencies + group)),
        *(f"pyproject.toml: {fault}" for fault in build_faults(project, dev)),
        *(f"requirements/dev.txt: {fault}" for fault in differences(runtime, dev, "runtime.txt")),
        *(f"requirements/dev.txt: {fault}" for fault in differences(image, dev, "image.txt")),
    ]
    for fault in faults:
        print(f"{fault}; run `make lock`")
    return 1 if faults else 0


def faults_of(lock: str, requirements: Iterable[str]) -> Iterator[str]:
    """Yield the faults of a lock: wrong packages, missing hashes, or the URL of an index."""
    pins = read(lock)
    wanted = {canonicalize_name(asked.name): asked for asked in map(Requirement, requirements)}
    for name, asked in wanted.items():
        if name not in pins:
            yield f"{name} is required and not locked"
        elif not asked.specifier.contains(pins[name].version):
            yield f"{name} is locked at {pins[name].version}, required is {asked.specifier}"
    for pin in pins.values():
        if pin.is_direct and pin.name not in wanted:
            yield f"{pin.name} is locked and no longer required"
        if not pin.is_hashed:
            yield f"{pin.name} has no hash"
    if "://" in lock or "--index" in lock or "--find-links" in lock:
        yield "names the index that packages come from"


def build_faults(project: dict[str, dict[str, list[str]]], dev: str) -> Iterator[str]:
    """Yield build requirements that are not locked: the wheel is built without isolation."""
    pins = read(dev)
    for asked in map(Requirement, project["build-system"]["requires"]):
        pin = pins.get(canonicalize_name(asked.name))
        if pin is None or not asked.specifier.contains(pin.version):
            yield f"build-system.requires {asked}, which requirements/dev.txt does not hold"


def differences(lock: str, dev: str, name: str) -> Iterator[str]:
    """Yield packages that are tested in another version than the shipped one."""
    tested = read(dev)
    for shipped in read(lock).values():
        if shipped.name not in tested or tested[shipped.name].version != shipped.version:
            yield f"{shipped.name} is not locked at {shipped.version} as in requirements/{name}"


def read(lock: str) -> dict[str, Pin]:
    """Return the pins of a lock by canonical name."""
    blocks = re.split(r"\n(?=\S)", lock)
    pins = (
        Pin(
            name=canonicalize_name(found["name"]),
            version=found["version"],
            is_hashed="--hash=sha256:" in block,
            is_direct=WANTED_DIRECTLY.search(block) is not None,
        )
        for block in blocks
        if (found := PIN.match(block))
    )
    return {pin.name: pin for pin in pins}


if __name__ == "__main__":
    sys.exit(main())
