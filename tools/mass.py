"""`python -m tools.mass`: files and lines of each package; exits with 1 if the tests weigh more."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TESTS_LINES_MAX = 113_022
"""Lower it with each change that removes tests."""
AREAS: Final = {
    "src/tollhouse": ".py",
    "tests": ".py",
    "tools": ".py",
    "bench": ".py",
    "console/src": ".ts*",
    "console/e2e": ".ts",
    "docs": ".md",
}


def weigh(area: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, files and lines of each folder of an area, the area itself last."""
    found: dict[str, list[int]] = {}
    for path in sorted((ROOT / area).rglob(f"*{AREAS[area]}")):
        below = path.relative_to(ROOT / area).parts
        folder = f"{area}/{below[0]}" if len(below) > 1 else f"{area}/*"
        found.setdefault(folder, []).append(len(path.read_bytes().splitlines()))
    yield from ((name, len(lines), sum(lines)) for name, lines in found.items())
    yield area, sum(map(len, found.values())), sum(map(sum, found.values()))


def main() -> int:
    """Print the table, and return 1 if the tests have more lines than they may."""
    for area in AREAS:
        for name, files, lines in weigh(area):
            print(f"{name:40} {files:6,} {lines:9,}")
    *_, (_, _, tests) = weigh("tests")
    print(f"tests: {tests:,} lines of at most {TESTS_LINES_MAX:,}")
    return int(tests > TESTS_LINES_MAX)


if __name__ == "__main__":
    sys.exit(main())
