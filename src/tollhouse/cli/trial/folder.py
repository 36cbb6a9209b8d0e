"""The files of a trial: its configuration, and one folder beside it that `reset` removes."""

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
from tollhouse.cli.deployment.configuration_file import draft_path
from tollhouse.cli.trial.processes import Process

FOLDER: Final = ".tollhouse"
OWNER_ONLY: Final = 0o700


class NotATrial(GatewayError):
    """The configuration was not written by `tollhouse up`, so the trial commands refuse it."""

    kind = Kind.CONFLICT
    code = "not_a_trial"
    template = (
        "{self.settings_path} belongs to a deployment that `tollhouse up` did not make. Nothing "
        "was changed. Run this in another directory."
    )
    settings_path: Path


class NoTrial(GatewayError):
    """There is nothing to stop or remove."""

    kind = Kind.NOT_FOUND
    code = "no_trial"
    template = "There is no trial in this directory. `tollhouse up` starts one."


class TrialBusy(GatewayError):
    """Another command changes the same trial."""

    kind = Kind.CONFLICT
    code = "trial_busy"
    template = (
        "Another `tollhouse up`, `down` or `reset` is running in this directory. Wait until it has "
        "ended, then run this again."
    )


class Server(Struct, frozen=True, kw_only=True):
    """A PostgreSQL server that the trial started. `account` runs it if this user is root."""

    folder: str
    binaries: str
    account: str | None
    port: int


class Trial(Struct, frozen=True, kw_only=True):
    """The state of a trial between two commands. `server` is None if --database-url was given.

    `why_scripted` is the reason if the small model could not be downloaded or started.
    """

    database_url: str
    is_database_created: bool = False
    server: Server | None = None
    engine: Literal["demo", "test"] | None = None
    why_scripted: str | None = None
    engine_port: int = 0
    scripted_port: int = 0
    processes: dict[str, Process] = {}
    are_keys_shown: bool = False

    @property
    def database_place(self) -> str:
        """The folder of the trial's own PostgreSQL, or words for the one that was given."""
        return "the database of --database-url" if self.server is None else self.server.folder


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """The configuration file of a trial and the folder beside it."""

    settings_path: Path

    @property
    def path(self) -> Path:
        """The folder with everything but the configuration."""
        return self.settings_path.absolute().parent / FOLDER

    @property
    def is_complete(self) -> bool:
        """Whether an `up` has ever finished: the configuration is moved into place last."""
        return self.settings_path.exists()

    def log(self, name: str) -> Path:
        """Return the path of a process's log."""
        return self.path / f"{name}.log"

    def read(self) -> Trial | None:
        """Return the stored trial, or None if there is none."""
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=Trial)
        except FileNotFoundError:
            return None

    def require(self) -> Trial:
        """Return the stored trial, or raise `NoTrial`."""
        trial = self.read()
        if trial is None:
            raise NoTrial
        return trial

    def write(self, trial: Trial) -> None:
        """Replace the stored trial atomically, so that later commands find its processes."""
        written = self._state.with_suffix(".partial")
        written.write_bytes(msgspec.json.encode(trial))
        written.replace(self._state)

    def clear(self) -> None:
        """Delete the configuration, the stored trial and the logs."""
        for path in (self.settings_path, draft_path(self.settings_path), self._state):
            path.unlink(missing_ok=True)
        for path in self.path.glob("*.log"):
            path.unlink()

    def make(self) -> None:
        """Create the folder if it is missing. Raises `NotATrial` beside another configuration."""
        if self.settings_path.exists() and not self._state.exists():
            raise NotATrial(settings_path=self.settings_path)
        self.path.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Exclude other trial commands during the block. Raises `NoTrial` or `TrialBusy`."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
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
        """Remove the folder unless it holds files that Tollhouse did not make."""
        with suppress(OSError):
            self.path.rmdir()

    @property
    def _state(self) -> Path:
        return self.path / "trial.json"
