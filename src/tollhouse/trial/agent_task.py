"""The task of a coding agent that the scripted model plays: read a file, edit it, run a command.

A user asks for it in one sentence. Each step follows from the calls that the conversation has, so
that the same conversation always goes on in the same way.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tollhouse.contract.bounds import FreeObject
from tollhouse.trial.chat import Chat
from tollhouse.trial.schemas import example

TASK: Final = "Read {file}, replace `{old}` with `{new}` and run `{command}`."
"""The sentence of a user."""
EDIT_BLOCK: Final = """\
{file}
```
<<<<<<< SEARCH
{old}
=======
{new}
>>>>>>> REPLACE
```
"""
"""An edit in an answer, for an agent that offers no tools and says that it reads such blocks."""
_EDIT_BLOCKS: Final = "SEARCH/REPLACE"
_TASK: Final = re.compile(
    TASK.replace(".", r"\.").format(
        file=r"(?P<file>[\w./-]+)",
        old="(?P<old>[^`\n]+)",
        new="(?P<new>[^`\n]+)",
        command="(?P<command>[^`\n]+)",
    )
)
_Names = tuple[str, ...]
"""The names that agents give to one parameter."""
_PATHS: Final[_Names] = ("file_path", "filePath", "path")
_OLD: Final[_Names] = ("old_string", "oldString")
_NEW: Final[_Names] = ("new_string", "newString")
_COMMANDS: Final[_Names] = ("command", "cmd")


class ToolCall(NamedTuple):
    """A call of an offered tool, with its arguments as JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentTask:
    """What the user asks for, and the number of calls that were made for it."""

    file: str
    old: str
    new: str
    command: str
    calls: int

    @property
    def shell_commands(self) -> tuple[str, str, str]:
        """The three steps for an agent that has only a shell."""
        file = shlex.quote(self.file)
        edit = shlex.quote(f"s/{self.old}/{self.new}/")
        return f"cat {file}", f"sed -i {edit} {file}", self.command


def task_of(asked: Chat) -> AgentTask | None:
    """Return the task that a user asked for last, or None."""
    for position, message in reversed(list(enumerate(asked.messages))):
        if message.role == "user" and (found := _TASK.search(message.text)) is not None:
            later = asked.messages[position + 1 :]
            calls = sum(len(each.tool_calls or ()) for each in later)
            return AgentTask(**found.groupdict(), calls=calls)
    return None


def next_call(asked: Chat) -> ToolCall | None:
    """Return the next call, or None if the tools do not suffice or all calls were made."""
    task = task_of(asked)
    if task is None:
        return None
    tools: list[FreeObject] = [tool.get("function") or {} for tool in asked.tools or ()]
    return next(_steps(task, tools, skipped=task.calls), None)


def closing_text(asked: Chat) -> str | None:
    """Return what is said in place of a call, or None if no task is played."""
    task = task_of(asked)
    if task is None:
        return None
    if task.calls:
        return f"I edited {task.file} and ran the command."
    if any(_EDIT_BLOCKS in each.text for each in asked.messages if each.role == "system"):
        return EDIT_BLOCK.format(file=task.file, old=task.old, new=task.new)
    return None


def _steps(task: AgentTask, tools: list[FreeObject], *, skipped: int) -> Iterator[ToolCall]:
    path = (_PATHS, task.file)
    own = (
        _call(tools, path, name="read"),
        _call(tools, path, (_OLD, task.old), (_NEW, task.new)),
        None,
    )
    for step, command in list(zip(own, task.shell_commands, strict=True))[skipped:]:
        if (call := step or _call(tools, (_COMMANDS, command))) is not None:
            yield call


def _call(tools: list[FreeObject], *wanted: tuple[_Names, str], name: str = "") -> ToolCall | None:
    """Return a call of the first tool that has a text parameter for each wanted value."""
    for tool in tools:
        parameters: FreeObject = tool.get("parameters") or {}
        offered: dict[str, Any] = parameters.get("properties") or {}
        texts = [each for each in offered if offered[each].get("type") == "string"]
        named = {each: value for names, value in wanted for each in names if each in texts}
        if len(named) == len(wanted) and name in str(tool["name"]).lower():
            needed = {each: example(offered[each]) for each in parameters.get("required") or ()}
            return ToolCall(name=tool["name"], arguments=json.dumps(needed | named))
    return None
