"""Four agents, unmodified, on what `tollhouse up` configures, by the exact lines that it prints."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import Operator
from tests.cli.conftest import keys_of, tools, trial
from tests.cli.documents import read, scripts
from tests.clients.agents import AGENTS, environment
from tests.clients.programs import run_to_end
from tests.clients.recording import Shows
from tollhouse.cli.trial.agents import agent_commands
from tools import clients

__all__ = ["tools", "trial"]

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_reads_a_file_edits_it_and_runs_a_command(
    trial: tuple[Operator, dict[str, Any]], folder: Path, agent: str, shows: Shows
) -> None:
    assert clients.is_prepared(agent), "run `make test-clients`"
    shows(agent, "stream", *(() if agent == "aider" else ("tools",)))
    _, made = trial
    keys = keys_of(made)

    ended = await run_to_end(
        *("bash", "-eu", "-c", made["agents"][agent]),
        folder=folder,
        environment=environment(
            folder.parent / "home", keys["TOLLHOUSE_URL"], keys["TOLLHOUSE_PROJECT_KEY"]
        ),
    )

    assert ended.status == 0, ended
    assert (folder / "copy.txt").read_text() == "Good morning\n", ended


@pytest.mark.parametrize("agent", AGENTS)
def test_the_guide_has_the_same_commands(agent: str) -> None:
    command = getattr(agent_commands("team/coder", "Do it.", before=""), agent)

    assert command in scripts(read("docs/guides/coding-agents.md"))
