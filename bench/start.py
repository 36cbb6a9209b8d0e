"""`python -m bench.start [--json]`: how long the command and the service take to start.

Verbs run on the interpreter that a deployment would have, with compiled files. The service is
measured from the start of its supervisor to the first answer of its one worker.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from bench.support import interpreters, processes
from bench.support.customers import customer
from bench.support.interpreters import REPOSITORY, Interpreter
from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.processes import running_service

VERBS: Final = ("--help", "org list --help", "credits show --help", "requests --help")
VERB_SECONDS_MAX: Final = 0.25
SERVICE_SECONDS_MAX: Final = 1.0
_COMMAND: Final = "import sys; from tollhouse.cli.main import main; sys.exit(main())"


def verb_seconds(interpreter: Interpreter, verb: str) -> float:
    """Run a verb once."""
    begun_seconds = time.monotonic()
    subprocess.run(  # noqa: S603 - nothing in it comes from outside
        (interpreter.program, "-c", _COMMAND, *verb.split()),
        check=True,
        capture_output=True,
        cwd=REPOSITORY,
        env=interpreter.environment(),
    )
    return time.monotonic() - begun_seconds


async def service_figures(interpreter: Interpreter, folder: Path, rounds: int) -> dict[str, float]:
    """Return the seconds from the start of the service to its first answer, and idle memory."""
    async with databases.temporary() as url:
        settings = settings_for(url)
        org, key = await customer(settings)
        await org.database.close()
        seconds: list[float] = []
        memory_mb = 0.0
        for _ in range(rounds):
            begun_seconds = time.monotonic()
            async with running_service(
                settings,
                folder,
                program=interpreter.program,
                environment=interpreter.environment(),
            ) as service:
                async with service.client(key) as client:
                    (await client.get("/v1/models")).raise_for_status()
                seconds.append(time.monotonic() - begun_seconds)
                memory_mb = processes.memory_mb(service.started_workers()[-1])
    return {"seconds": round(median(seconds), 2), "worker_memory_mb": round(memory_mb, 1)}


async def measure(arguments: argparse.Namespace) -> None:
    """Run everything in turns, and print medians."""
    interpreter = await asyncio.to_thread(interpreters.chosen)
    taken: dict[str, list[float]] = {verb: [] for verb in VERBS}
    for _ in range(arguments.rounds + 1):
        for verb, seconds in taken.items():
            seconds.append(await asyncio.to_thread(verb_seconds, interpreter, verb))
    with TemporaryDirectory(prefix="tollhouse-bench-") as name:
        service = await service_figures(interpreter, Path(name), arguments.rounds)
    verbs = {verb: round(median(seconds[1:]), 3) for verb, seconds in taken.items()}
    found = {
        "interpreter": interpreter.description,
        "verb_seconds": verbs,
        "service_from_start_to_first_answer": service,
        "bars": {
            f"verbs under {VERB_SECONDS_MAX:g} s": max(verbs.values()) < VERB_SECONDS_MAX,
            f"service under {SERVICE_SECONDS_MAX:g} s": service["seconds"] < SERVICE_SECONDS_MAX,
        },
    }
    sys.stdout.write(json.dumps(found, indent=None if arguments.json else 2) + "\n")


def main() -> None:
    """With `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.start")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
