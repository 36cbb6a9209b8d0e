"""Background processes that one command starts and a later command stops."""

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
"""The index of the start time in /proc/PID/stat, counted after the command's name."""


class ProcessEnded(GatewayError):
    """A background process exited while it was starting."""

    kind = Kind.UNAVAILABLE
    code = "process_ended"
    template = "The {self.name} did not start. {self.log} ends with:{self.last_lines}"

    def __init__(self, name: str, log: Path) -> None:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        super().__init__(name=name, log=log, last_lines="".join(f"\n{line}" for line in lines))


class Process(Struct, frozen=True):
    """A process by its ID and start time, since an ID can be used again."""

    pid: int
    started_ticks: int


def start(name: str, settings_path: Path, command: list[str], log: Path) -> tuple[Process, str]:
    """Start a Tollhouse command in the background. Return it with its first line of output."""
    with log.open("ab") as error_output:
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "tollhouse.cli.main", "--config", str(settings_path), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=error_output,
            # CTRL-C in this terminal must not stop it.
            start_new_session=True,
        )
    assert process.stdout is not None
    with process.stdout as standard_output:
        announced = standard_output.readline().decode()
    started_ticks = _started_ticks(process.pid)
    if not announced or started_ticks is None:
        process.wait()
        raise ProcessEnded(name, log)
    # Without a return code, Popen would warn that the process still runs.
    process.returncode = 0
    return Process(process.pid, started_ticks), announced


def is_running(process: Process | None) -> bool:
    """Return whether the process that was started still runs."""
    return process is not None and _started_ticks(process.pid) == process.started_ticks


def stop(process: Process | None) -> None:
    """Terminate a process and return when it has ended. Kills it after `STOP_SECONDS`."""
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
    """Return the start time in ticks since boot, or None if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name can contain any character and ends at the last bracket.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[_START_TIME])
