"""What `tollhouse up` says at its end: addresses, keys once, and commands to paste."""

from typing import Final, Literal

from msgspec import Struct

ENGINES: Final = {
    "demo": "a small real model on llama.cpp: it speaks, and that is all",
    "test": "a scripted engine; pip install 'tollhouse[demo]', then `tollhouse reset` and `up`, "
    "for a real one",
}

JUDGING: Final = {
    "demo": "The small model also judges the policies, to show how that goes: its verdicts mean "
    "nothing.",
    "test": "Nothing judges the policies: docs/guides/judging.md says how to name a judge.",
}

RUNNING: Final = """\
Tollhouse is up.

  gateway    {base_url}
  console    {console_url}
  model      {model} ({engine})
  database   {database}
"""

KEYS: Final = """
These keys are shown only now. Paste the lines into the terminals that you work in:

export TOLLHOUSE_URL={base_url}
export TOLLHOUSE_ADMIN_KEY={admin_key}
export TOLLHOUSE_PROJECT_KEY={project_key}
export TOLLHOUSE_OTHER_PROJECT_KEY={other_project_key}
"""

NO_KEYS: Final = """
Its keys were shown when it was made. If they are lost, make others, one for the console and
`TOLLHOUSE_ADMIN_KEY`, and one for `TOLLHOUSE_PROJECT_KEY` in a project of the list:

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
    print(chunk.choices[0].delta.content or "", end="")
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

AFTERWARDS: Final = """
What became of it, and what it cost; sign in at the console with the Admin key to see the same:

tollhouse requests
tollhouse costs
tollhouse policy list

The usage of past days is an example, made up, by keys that are named so.
{judging}
`tollhouse down` stops everything, `tollhouse up` starts it again, `tollhouse reset` removes it.
"""


class Commands(Struct, frozen=True, kw_only=True):
    """To be pasted where the lines with the keys were pasted."""

    curl: str
    python: str
    node: str


class Keys(Struct, frozen=True, kw_only=True):
    """Values that are shown once."""

    admin_key: str
    project_key: str
    other_project_key: str


class Running(Struct, frozen=True, kw_only=True):
    """A trial that is up. It has `keys` only when it was made by this very command."""

    object: Literal["trial"] = "trial"
    base_url: str
    console_url: str
    model: str
    engine: Literal["demo", "test"]
    database: str
    keys: Keys | None
    commands: Commands


def commands(model: str) -> Commands:
    """For a model of the trial's."""
    return Commands(
        curl=CURL.format(model=model),
        python=PYTHON.format(model=model),
        node=NODE.format(model=model),
    )


def text(running: Running) -> str:
    """For people."""
    shown = RUNNING.format(
        base_url=running.base_url,
        console_url=running.console_url,
        model=running.model,
        engine=ENGINES[running.engine],
        database=running.database,
    )
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
        + AFTERWARDS.format(judging=JUDGING[running.engine])
    )
