"""The page of commands, from the help that each of them prints."""

import click

from tollhouse.cli.main import COMMANDS, tollhouse
from tools.reference.tables import code, table

HEAD = """\
# Commands

Every verb but `serve` takes `--json`: one JSON document on standard output, failures as
`{"error": {"code", "message"}}` on standard error. The exit code is 0 when it worked, 1 when the
operation failed, 2 when the call was wrong. What cannot be undone asks first, or needs `--yes`.
`--help` of each verb has its options and ends with an example. Verbs of operations work
[from anywhere](../guides/command-line.md) with an Admin key.

"""


def page() -> str:
    """Return the page: a table of all verbs, then one for each verb that has others below it."""
    context = click.Context(tollhouse)
    overview = [(code(f"tollhouse {name}"), entry.summary) for name, entry in COMMANDS.items()]
    parts = [HEAD, table(("verb", "what it does"), overview)]
    for name in COMMANDS:
        verb = tollhouse.get_command(context, name)
        if isinstance(verb, click.Group):
            parts += [
                f"\n## tollhouse {name}\n\n",
                table(("verb", "what it does"), _below(name, verb)),
            ]
    return "".join(parts)


def _below(name: str, group: click.Group) -> list[tuple[str, str]]:
    """Return the verbs below a group with the first sentence of their help, at every depth."""
    rows: list[tuple[str, str]] = []
    for below, verb in group.commands.items():
        full_name = f"{name} {below}"
        if isinstance(verb, click.Group):
            rows += _below(full_name, verb)
        else:
            rows.append((code(f"tollhouse {full_name}"), verb.get_short_help_str(limit=1_000)))
    return rows
