"""What a run says at its end."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from tools.mutants import evidence, targets
from tools.mutants.evidence import ALIVE, Run
from tools.mutants.testing import Tested
from tools.mutants.trees import Status


def report(options: argparse.Namespace, found: Sequence[Tested], failing: set[str]) -> int:
    """Print survivors and counts. Returns 1 if a known mutant or a planted bug survives."""
    decided = [tested for tested in found if tested.result.killer not in failing]
    accepted = evidence.accepted()
    alive = [
        tested
        for tested in decided
        if tested.result.status in ALIVE and tested.mutant.identity not in accepted
    ]
    for name in sorted(failing):
        print(f"fails without a mutant, so what it killed is not counted: {name}")
    for tested in alive:
        print(f"{tested.result.status}: {tested.mutant.place}\n    {tested.mutant.identity}")
    run = _run(decided)
    if options.write:
        evidence.note(tested.entry for tested in decided)
        evidence.add(run)
        evidence.write_page()
    ends = f"{run.killed} killed, {run.timed_out} timed out, {run.survived + run.untested} survived"
    print(f"{run.mutants} mutants: {ends}")
    if options.json:
        print(msgspec.json.encode(run).decode())
    if options.planted:
        return int(bool(alive or failing))
    return 1 if options.known and alive else 0


def _run(decided: Sequence[Tested]) -> Run:
    counts = evidence.counted(tested.entry for tested in decided)
    return Run(
        date=datetime.now(UTC).date().isoformat(),
        commit=targets.git("rev-parse", "HEAD").strip(),
        command=f"python -m tools.mutants {shlex.join(sys.argv[1:])}",
        mutants=len(decided),
        killed=counts[Status.KILLED],
        timed_out=counts[Status.TIMED_OUT],
        survived=counts[Status.SURVIVED],
        untested=counts[Status.UNTESTED],
    )
