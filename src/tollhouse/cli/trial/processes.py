"""Processes that outlive the command that starts them, and are found again by another."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from tollhouse.base.errors import GatewayError, Kind

STOP_SECONDS: Final = 20.0
TAIL_LINES: Final = 5
_START_TIME: Final = 19
"""The field of /proc/PID/stat, counted behind the command's name."""


class ProcessEnded(GatewayError):
    """It should have run on."""

    kind = Kind.UNAVAILABLE
    code = "process_ended"

    def __init__(self, name: str, log: Path) -> None:
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        super().__init__("\n".join([f"The {name} did not start. {log} ends with:", *said]))


class Process(Struct, frozen=True):
    """Its number alone may belong to another process by now."""

    pid: int
    started_ticks: int


def start(name: str, settings_path: Path, verb: list[str], log: Path) -> tuple[Process, str]:
    """Run a verb of ours until it has said its first line, and leave it running."""
    with log.open("ab") as said:
        begun = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "tollhouse.cli.main", "--config", str(settings_path), *verb],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            # CTRL-C in this terminal is not meant for it.
            start_new_session=True,
        )
    assert begun.stdout is not None
    with begun.stdout as announcing:
        announced = announcing.readline().decode()
    started_ticks = _started_ticks(begun.pid)
    if not announced or started_ticks is None:
        begun.wait()
        raise ProcessEnded(name, log)
    # It is not waited for: that is the point of it.
    begun.returncode = 0
    return Process(begun.pid, started_ticks), announced


def is_running(process: Process | None) -> bool:
    """Whether it is still the one that was started."""
    return process is not None and _started_ticks(process.pid) == process.started_ticks


def stop(process: Process | None) -> None:
    """Return when it has ended, in good order if it does so in time."""
    if process is None or not is_running(process):
        return
    with suppress(ProcessLookupError):
        watched = os.pidfd_open(process.pid)
        try:
            signal.pidfd_send_signal(watched, signal.SIGTERM)
            if not _has_ended(watched):
                os.killpg(process.pid, signal.SIGKILL)
                _has_ended(watched)
        finally:
            os.close(watched)


def _has_ended(watched: int) -> bool:
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    return bool(poll.poll(STOP_SECONDS * 1_000))


def _started_ticks(pid: int) -> int | None:
    """When it was started, in ticks since the machine was; nothing for one that has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name may hold anything, and ends at the last bracket.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[_START_TIME])
