"""Inputs that reach different code: one file per target, one input per line in base64."""

import base64
import json
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Final

TARGETS: Final = ("json_gate", "events", "answers", "requests", "identifiers", "contents")
INPUTS_MAX: Final = 400
_FOLDER: Final = Path(__file__).with_name("inputs")


def kept(target: str) -> list[bytes]:
    """Return the seeds of a target and the inputs that earlier runs found."""
    path = _FOLDER / f"{target}.jsonl"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    seeds: tuple[bytes, ...] = import_module(f"tests.fuzz.{target}").SEEDS
    return [*seeds, *(base64.b64decode(json.loads(line)) for line in lines)]


def keep(target: str, inputs: Iterable[bytes]) -> int:
    """Replace the inputs of a target by the shortest of these; return their number."""
    chosen = sorted(set(inputs), key=lambda data: (len(data), data))[:INPUTS_MAX]
    lines = (json.dumps(base64.b64encode(data).decode()) + "\n" for data in chosen)
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / f"{target}.jsonl").write_text("".join(lines), encoding="ascii")
    return len(chosen)
