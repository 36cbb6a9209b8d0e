"""`python -m tools.notice`: write NOTICE, with the licences of everything that the wheel contains.

The console's packages are compiled into its files, and the documentation has the theme of its
generator. `--check` compares instead, and refuses a dependency whose licence is not known here.
It needs `npm ci` in console/.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path
from typing import Final

from tools.sbom import PIN, ROOT, licence

NOTICE: Final = ROOT / "NOTICE"
CONSOLE: Final = ROOT / "console"
SITE_GENERATOR: Final = "zensical"
TEXTS: Final = ("LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE")
ACCEPTED: Final = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0"),
        *("MIT License", "PSF-2.0"),
    }
)
"""Licences that allow what Tollhouse does: use by import, and copies in a wheel."""
CLASSIFIER: Final = re.compile(r"License :: OSI Approved :: (\w+) ")
HEAD: Final = """\
Tollhouse is licensed under the Apache License 2.0: see LICENSE.

The wheel contains parts of the following packages. Python packages that it needs are installed
beside it with their own licences.
"""
RULE: Final = "=" * 80


@dataclass(frozen=True, kw_only=True)
class Bundled:
    """A package whose code is in the wheel."""

    name: str
    version: str
    licence: str
    text: str


def main(arguments: list[str]) -> int:
    """Write NOTICE, or compare it and check all licences."""
    bundled = [*console_packages(), site_generator()]
    text = notice(bundled)
    if arguments != ["--check"]:
        NOTICE.write_text(text, encoding="utf-8")
        return 0
    problems = [
        f"{name}: the licence {stated} is not accepted; see tools/notice.py"
        for name, stated in (
            *((each.name, each.licence) for each in bundled),
            *runtime_licences(),
        )
        if not is_accepted(stated)
    ]
    if not NOTICE.exists() or NOTICE.read_text(encoding="utf-8") != text:
        problems.append("NOTICE is old: run python -m tools.notice")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def notice(bundled: list[Bundled]) -> str:
    """Return the text of NOTICE."""
    parts = (
        f"\n{RULE}\n{each.name} {each.version} ({each.licence})\n{RULE}\n\n{each.text.strip()}\n"
        for each in bundled
    )
    return HEAD + "".join(parts)


def is_accepted(stated: str | None) -> bool:
    """Return whether every licence of an AND expression, or one of an OR expression, is known."""
    if stated is None:
        return False
    return any(
        all(name.strip(" ()") in ACCEPTED for name in choice.split(" AND "))
        for choice in stated.split(" OR ")
    )


def console_packages() -> Iterator[Bundled]:
    """Yield the packages that are compiled into the console, from its lock."""
    lock = json.loads((CONSOLE / "package-lock.json").read_text(encoding="utf-8"))
    for place, package in sorted(lock["packages"].items()):
        if place and not package.get("dev"):
            yield Bundled(
                name=place.rpartition("node_modules/")[2],
                version=package["version"],
                licence=package["license"],
                text=_texts(CONSOLE / place),
            )


def site_generator() -> Bundled:
    """Return the generator of the documentation, whose theme is in the site."""
    found = distribution(SITE_GENERATOR)
    files = [file for file in found.files or [] if file.match("*.dist-info/licenses/LICENSE*")]
    return Bundled(
        name=SITE_GENERATOR,
        version=found.version,
        licence=licence(SITE_GENERATOR) or "unknown",
        text="\n\n".join(file.read_text() for file in files),
    )


def runtime_licences() -> Iterator[tuple[str, str | None]]:
    """Yield the name and licence of each package of the runtime's lock that is installed here."""
    lock = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    for name, _, _ in PIN.findall(lock):
        if _is_installed(name):
            yield name, licence(name) or _classified(name)


def _is_installed(name: str) -> bool:
    """Return whether the package is for this interpreter: a lock has more."""
    try:
        metadata(name)
    except PackageNotFoundError:
        return False
    return True


def _classified(name: str) -> str | None:
    """Return the licence of the package's classifiers, which older packages have instead."""
    found = CLASSIFIER.search("\n".join(metadata(name).get_all("Classifier") or []))
    return None if found is None else found[1]


def _texts(folder: Path) -> str:
    """Return the licence and notice of a package."""
    found = [folder / name for name in TEXTS if (folder / name).exists()]
    assert found, f"{folder} has no licence"
    return "\n\n".join(path.read_text(encoding="utf-8").strip() for path in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
