"""Commands that run coding agents through the gateway, each with a small task."""

from typing import Final

from msgspec import Struct

from tollhouse.trial.agent_task import TASK

FILE: Final = "greeting.txt"
COMMAND: Final = f"cp {FILE} copy.txt"
EXAMPLE: Final = TASK.format(file=FILE, old="Hello", new="Good morning", command=COMMAND)

BEFORE: Final = f"echo Hello > {FILE}\n"

CLAUDE: Final = """\
ANTHROPIC_BASE_URL="$TOLLHOUSE_URL/compat/anthropic" \\
  ANTHROPIC_AUTH_TOKEN="$TOLLHOUSE_PROJECT_KEY" ANTHROPIC_DEFAULT_HAIKU_MODEL={model} \\
  CLAUDE_CODE_MAX_CONTEXT_TOKENS=131072 \\
  claude --model {model} --print '{task}' --allowedTools Read Edit Bash
"""
CODEX: Final = """\
codex --config model_provider=tollhouse --config model_context_window=131072 --config \\
  "model_providers.tollhouse={{name='Tollhouse', base_url='$TOLLHOUSE_URL/v1', \\
  env_key='TOLLHOUSE_PROJECT_KEY', wire_api='responses'}}" \\
  exec --model {model} --skip-git-repo-check --sandbox workspace-write '{task}'
"""
OPENCODE: Final = """\
OPENCODE_CONFIG_CONTENT='{{"provider": {{"tollhouse": {{"npm": "@ai-sdk/openai-compatible",
  "options": {{"baseURL": "{{env:TOLLHOUSE_URL}}/v1", "apiKey": "{{env:TOLLHOUSE_PROJECT_KEY}}"}},
  "models": {{"{model}": {{"limit": {{"context": 131072, "output": 8192}}}}}}}}}}}}' \\
  opencode run --model tollhouse/{model} '{task}'
"""
AIDER: Final = """\
OPENAI_API_BASE="$TOLLHOUSE_URL/v1" OPENAI_API_KEY="$TOLLHOUSE_PROJECT_KEY" \\
  aider --model openai/{model} --edit-format diff --no-git --no-show-model-warnings --yes-always \\
  --auto-test --test-cmd '{command}' --message '{task}' {file}
"""


class AgentCommands(Struct, frozen=True, kw_only=True):
    """Commands that each run one agent in the current folder, with the exported keys."""

    claude: str
    codex: str
    opencode: str
    aider: str


def agent_commands(model: str, task: str = EXAMPLE, *, before: str = BEFORE) -> AgentCommands:
    """Return the commands for a model and a task; each begins with the lines `before`."""
    names = {"model": model, "task": task, "command": COMMAND, "file": FILE}
    return AgentCommands(
        claude=before + CLAUDE.format(**names),
        codex=before + CODEX.format(**names),
        opencode=before + OPENCODE.format(**names),
        aider=before + AIDER.format(**names),
    )
