"""Where a trial lives: beside its configuration, in one folder that `tollhouse reset` removes."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli.configuration import draft_path
from tollhouse.cli.trial.processes import Process

FOLDER: Final = ".tollhouse"
OWNER_ONLY: Final = 0o700


class NotATrial(GatewayError):
    """What `up` did not make, `up`, `down` and `reset` do not touch."""

    kind = Kind.CONFLICT
    code = "not_a_trial"

    def __init__(self, settings_path: Path) -> None:
        super().__init__(
            f"{settings_path} belongs to a deployment that `tollhouse up` did not make, and is "
            "left alone. Run this in another directory."
        )


class NoTrial(GatewayError):
    """There is nothing to stop or remove."""

    kind = Kind.NOT_FOUND
    code = "no_trial"

    def __init__(self) -> None:
        super().__init__("There is no trial here. `tollhouse up` starts one.")


class TrialBusy(GatewayError):
    """Two at once would start everything twice."""

    kind = Kind.CONFLICT
    code = "trial_busy"

    def __init__(self) -> None:
        super().__init__("Another `tollhouse up`, `down` or `reset` is at work here.")


class Server(Struct, frozen=True, kw_only=True):
    """A PostgreSQL of the trial's own. `account` runs it where this one, root, must not."""

    folder: str
    binaries: str
    account: str | None
    port: int


class Trial(Struct, frozen=True, kw_only=True):
    """What is known of it between two commands. Without a `server`, the database was given."""

    database_url: str
    is_database_created: bool = False
    server: Server | None = None
    engine: Literal["demo", "test"] | None = None
    engine_port: int = 0
    processes: dict[str, Process] = {}
    are_keys_shown: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The configuration file of the trial, and what lies beside it."""

    settings_path: Path

    @property
    def folder(self) -> Path:
        """All but the configuration."""
        return self.settings_path.absolute().parent / FOLDER

    @property
    def is_complete(self) -> bool:
        """Whether an `up` has ever come to its end: the configuration moves in place last."""
        return self.settings_path.exists()

    def log(self, name: str) -> Path:
        """What a process says."""
        return self.folder / f"{name}.log"

    def read(self) -> Trial | None:
        """The trial, or nothing if there is none."""
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=Trial)
        except FileNotFoundError:
            return None

    def write(self, trial: Trial) -> None:
        """At once, so that whatever runs can be found again."""
        written = self._state.with_suffix(".partial")
        written.write_bytes(msgspec.json.encode(trial))
        written.replace(self._state)

    def clear(self) -> None:
        """Forget what was in it."""
        for path in (self.settings_path, draft_path(self.settings_path), self._state):
            path.unlink(missing_ok=True)
        for path in self.folder.glob("*.log"):
            path.unlink()

    def make(self) -> None:
        """Begin here, or go on."""
        if self.settings_path.exists() and not self._state.exists():
            raise NotATrial(self.settings_path)
        self.folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep other verbs of trials out for the time of the block."""
        try:
            descriptor = os.open(self.folder, os.O_RDONLY)
        except FileNotFoundError:
            raise NoTrial from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise TrialBusy from None
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Take the folder away; a file that nobody here has made keeps it."""
        with suppress(OSError):
            self.folder.rmdir()

    @property
    def _state(self) -> Path:
        return self.folder / "trial.json"
