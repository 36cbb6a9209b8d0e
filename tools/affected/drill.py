"""`python -m tools.affected.drill`: break twelve files in turn; the check of each change must fail.

Each bug is a mutant that a test was quick to kill, one of each group of packages, drawn by a seed.
It is planted in a clone, where `python -m tools.affected` has to fail within a minute.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.mutants import generating, known, targets
from tools.mutants.mutant import Mutant

SECONDS_MAX: Final = 60


def main() -> int:
    """Try all bugs. Returns 1 if one is not seen, or takes longer than a minute."""
    parser = argparse.ArgumentParser(prog="python -m tools.affected.drill", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(targets.git("rev-parse", "HEAD")[:7], 16))
    seed = int(parser.parse_args().seed)
    found = list(_bugs(seed))
    missed = 0
    with tempfile.TemporaryDirectory(prefix="tollhouse-drill-") as folder:
        clone = Path(folder) / "clone"
        _run(targets.ROOT, "git", "clone", "--quiet", "--no-checkout", ".", str(clone))
        _run(clone, "git", "checkout", "--quiet", targets.git("rev-parse", "HEAD").strip())
        for mutant in found:
            seconds, is_seen, said = _planted(clone, mutant)
            is_met = is_seen and seconds <= SECONDS_MAX
            missed += not is_met
            print(f"{'seen' if is_seen else 'NOT SEEN'} in {seconds:.0f} s: {mutant.identity}")
            print(f"    {said}", flush=True)
    print(f"{len(found) - missed} passed, {missed} failed")
    return 1 if missed else 0


def _bugs(seed: int) -> Iterator[Mutant]:
    """Yield one mutant of each group."""
    groups: set[str] = set()
    for mutant in generating.sample(known.choose(generating.mutants(targets.ROOT)), seed):
        if (group := targets.group(mutant.path)) not in groups:
            groups.add(group)
            yield mutant


def _planted(clone: Path, mutant: Mutant) -> tuple[float, bool, str]:
    """Return the seconds that the check of a bug took, whether it failed, and its last line."""
    path = clone / mutant.path
    text = path.read_bytes()
    path.write_bytes(mutant.apply(text))
    began = time.monotonic()
    ended = _run(clone, sys.executable, "-m", "tools.affected", "--since", "HEAD", is_checked=False)
    seconds = time.monotonic() - began
    path.write_bytes(text)
    last = ended.stdout.splitlines()[-1:]
    return seconds, "FAILED: tests" in "".join(last), "".join(last)


def _run(
    folder: Path, *command: str, is_checked: bool = True
) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": f"{folder / 'src'}:{folder}"}
    return subprocess.run(  # noqa: S603 - a command of our own
        command, cwd=folder, env=environment, check=is_checked, stdout=subprocess.PIPE, text=True
    )


if __name__ == "__main__":
    sys.exit(main())
