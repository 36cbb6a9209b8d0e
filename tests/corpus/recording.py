"""The recording of all cases, and what differs from it."""

import difflib
import json
import lzma
import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
RECORDING: Final = FOLDER / "recording.jsonl.xz"
ALLOWED: Final = FOLDER / "allowed.toml"
SHOWN_CASES_MAX: Final = 5
SHOWN_LINES_MAX: Final = 24

Texts = dict[str, dict[str, str]]
"""For each case, by its name, a text of what each side saw."""


@dataclass
class Allowed:
    """A difference that is meant: what becomes of the recorded text of one side of some cases."""

    cases: str
    side: str
    pattern: str
    becomes: str
    reason: str
    uses: int = field(default=0, init=False)

    def apply(self, case: str, side: str, text: str) -> str:
        if side != self.side or not fnmatchcase(case, self.cases):
            return text
        text, count = re.subn(self.pattern, self.becomes, text, flags=re.MULTILINE)
        self.uses += count
        return text


def allowed() -> list[Allowed]:
    return [Allowed(**each) for each in tomllib.loads(ALLOWED.read_text()).get("allowed", [])]


def write(found: Texts) -> None:
    lines = (json.dumps([name, found[name]], ensure_ascii=False) for name in sorted(found))
    RECORDING.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))


def read() -> Texts:
    if not RECORDING.exists():
        return {}
    return dict(map(json.loads, lzma.decompress(RECORDING.read_bytes()).decode().split("\n")))


def differences(found: Texts, recorded: Texts, rules: Sequence[Allowed]) -> list[str]:
    """Return each difference once, with the cases that have it, the most frequent first."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for case, sides in found.items():
        if case not in recorded:
            grouped["not recorded"].append(case)
            continue
        for side, after in sides.items():
            before = recorded[case][side]
            for rule in rules:
                before = rule.apply(case, side, before)
            if before != after:
                grouped[f"{side}\n{_changed(before, after)}"].append(case)
    frequent = sorted(grouped.items(), key=lambda item: -len(item[1]))
    return [_told(difference, cases) for difference, cases in frequent]


def _changed(before: str, after: str) -> str:
    compared = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0)
    changed = [line for line in list(compared)[2:] if not line.startswith("@@")]
    return "\n".join(changed[:SHOWN_LINES_MAX])


def _told(difference: str, cases: list[str]) -> str:
    shown = "\n".join(f"    {case}" for case in sorted(cases)[:SHOWN_CASES_MAX])
    return f"{len(cases)} cases differ: {difference}\n  such as\n{shown}\n"
