"""Compare how many places were examined with how many were when `examined.json` was written."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.checks.source import Finding

PATH = "tools/checks/examined.json"
FALL_PERCENT_MAX = 1
"""Since the number was written. Of less than a hundred places none may go."""
GROWTH_PERCENT_MAX = 10
GROWTH_MIN = 10
"""A number that grew by more than both says little about a fall."""
FELL = "{kind} {name} examined {now} places, not {before} as before. If code went, `--write` them"
GREW = "{kind} {name} examined {now} places, and only {before} before: `--write` them"
NEW = "{kind} {name} examined {now} places and has no number: `--write` it"
GONE = "{kind} {name} examined nothing and has a number: `--write` them if it went"

Counts = Mapping[str, Mapping[str, int]]


def write(root: Path, counts: Counts) -> None:
    """Make the present numbers those to compare with."""
    text = json.dumps(counts, indent=2, sort_keys=True)
    (root / PATH).write_text(f"{text}\n", encoding="utf-8")


def check(root: Path, counts: Counts) -> Iterator[Finding]:
    """Find numbers that fell, or grew so far that they guard little."""
    path = root / PATH
    recorded: Counts = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for kind, present in counts.items():
        earlier = recorded.get(kind, {})
        for name in sorted({*present, *earlier}):
            message = _message(present.get(name, 0), earlier.get(name))
            if message is not None:
                values = {"now": present.get(name, 0), "before": earlier.get(name)}
                said = message.format(kind=kind, name=name, **values)
                yield Finding(path=PATH, line=1, message=said)


def _message(now: int, before: int | None) -> str | None:
    if before is None:
        return NEW
    if (before - now) * 100 > before * FALL_PERCENT_MAX:
        return FELL if now else GONE
    grown = now - before
    is_far = grown > GROWTH_MIN and grown * 100 > before * GROWTH_PERCENT_MAX
    return GREW if is_far else None


def lines(counts: Counts) -> Iterator[str]:
    """Say on one line for each kind what was examined."""
    for kind, present in counts.items():
        said = ", ".join(f"{name} {count:,}" for name, count in sorted(present.items()))
        yield f"examined by {kind}: {said}"
