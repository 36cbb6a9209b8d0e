"""The verbs of one noun: those of its operations, and those that are written by hand."""

import importlib
from collections.abc import Mapping
from typing import Final

import click

from tollhouse.cli.arguments import example
from tollhouse.cli.verbs.commands import command
from tollhouse.contract.operation import AnyOperation
from tollhouse.contract.operations import OPERATIONS
from tollhouse.contract.operator_operations import OPERATIONS as OF_OPERATOR

OFFERED: Final[Mapping[str, AnyOperation]] = {
    operation.command.name: operation
    for operation in (*OPERATIONS, *OF_OPERATOR)
    if operation.command is not None
}
"""The operations with a command, by its name."""


class Verbs(click.Group):
    """Makes or imports a verb when it is used.

    `prefix`: the words before the verbs. `by_hand`: the place of each verb that no operation has.
    """

    def __init__(
        self, prefix: str, summary: str, by_hand: Mapping[str, str], *, run: AnyOperation | None
    ) -> None:
        own = None if run is None else command(run)
        super().__init__(
            prefix.rpartition(" ")[2],
            help=summary if own is None else own.help,
            epilog=own.epilog if own is not None else None,
            params=None if own is None else own.params,
            callback=None if own is None else own.callback,
            invoke_without_command=own is not None,
        )
        self._prefix = prefix
        self._by_hand = by_hand
        self._run = own
        if own is None:
            self.epilog = example(_example(prefix))

    def list_commands_below(self) -> list[str]:
        """Return the names of all verbs, those of operations first."""
        own = f"{self._prefix} "
        below = [name.removeprefix(own).split()[0] for name in OFFERED if name.startswith(own)]
        return list(dict.fromkeys([*below, *self._by_hand]))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs, those of operations first."""
        del ctx
        return self.list_commands_below()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each verb's help, however long it is."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, verb.get_short_help_str(1_000)) for name, verb in found if verb is not None]
            )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb, or None if there is none of this name."""
        del ctx
        name = f"{self._prefix} {cmd_name}"
        if cmd_name in self._by_hand:
            module, _, attribute = self._by_hand[cmd_name].partition(":")
            return getattr(importlib.import_module(f"tollhouse.cli.{module}"), attribute)
        if any(each.startswith(f"{name} ") for each in OFFERED):
            return Verbs(name, SUMMARIES[name], {}, run=OFFERED.get(name))
        return command(OFFERED[name]) if name in OFFERED else None


SUMMARIES: Final = {
    "org checks": "Grant and revoke the checks that models can require of an organization.",
    "org limits": "Limit the traffic of an organization, which it can only read.",
}


def _example(prefix: str) -> str:
    """Return a command line of the noun, of a list if it has one."""
    below = [name for name in OFFERED if name.startswith(f"{prefix} ")]
    name = next((each for each in below if each.endswith((" list", " show"))), below[0])
    spec = OFFERED[name].command
    return f"tollhouse {name} {spec.example if spec is not None else ''}".strip()


def noun(name: str, summary: str, by_hand: Mapping[str, str]) -> click.Command:
    """Return the command of a noun."""
    run = OFFERED.get(name)
    has_verbs = bool(by_hand) or any(each.startswith(f"{name} ") for each in OFFERED)
    return Verbs(name, summary, by_hand, run=run) if has_verbs else command(OFFERED[name])
