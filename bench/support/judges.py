"""`python -m bench.support.judges`: the tests' judge as a process of its own, until it is ended.

The rule says what it does: fail, never answer, or say no.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from bench.support.interpreters import REPOSITORY
from tests.support.judge import P_NO, Fault, ReceivedQuestion, ScriptedJudge, running_judge

ANSWERED: Final = "Does the text tell how a toll is to be avoided by whoever has to pay it?"
FAILING: Final = "Does the judge fail?"
SILENT: Final = "Does the judge say nothing?"
_FAULTS: Final = {FAILING: Fault.ERROR_500, SILENT: Fault.STALLS}


async def serve() -> None:
    """Says where it listens, and forgets what it was asked: thousands of questions are long."""
    judge = ScriptedJudge()

    def says_no(_: ReceivedQuestion) -> float:
        judge.received.clear()
        return P_NO

    judge.answers = says_no
    judge.fails = lambda question: _FAULTS.get(question.rule)
    async with running_judge(judge):
        sys.stdout.write(f"{judge.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


@asynccontextmanager
async def running() -> AsyncGenerator[str]:
    """Its base URL."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.support.judges"),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = await process.stdout.readline()
        assert line, "the judge did not start"
        yield line.decode().strip()
    finally:
        process.kill()
        await process.communicate()


if __name__ == "__main__":
    asyncio.run(serve())
