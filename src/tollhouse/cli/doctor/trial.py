"""Check whether the trial that a configuration belongs to is running."""

from pathlib import Path

from tollhouse.base.findings import Finding, failure, ok
from tollhouse.cli.trial import lifecycle
from tollhouse.cli.trial.folder import TrialFolder


def trial(settings_path: Path) -> Finding | None:
    """Return whether all parts of the trial run, or None if `tollhouse up` did not make it."""
    stored = TrialFolder(settings_path).read()
    if stored is None:
        return None
    if stopped := lifecycle.stopped_parts(stored):
        found = f"the trial is not running: {', '.join(stopped)} stopped"
        return failure("trial", found, "Run `tollhouse up`. Nothing else was checked.")
    return ok("trial", "all its processes run")
