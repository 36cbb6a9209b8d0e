"""The `tollhouse` command: runs a subcommand and reports its failure with an exit code."""

import importlib
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from tollhouse.cli import failures
from tollhouse.cli.arguments import example
from tollhouse.settings import CONFIG_PATH_VARIABLE, DEFAULT_CONFIG_PATH

COMMANDS: Final = {
    "up": "trial.commands:up",
    "down": "trial.commands:down",
    "reset": "trial.commands:reset",
    "init": "deployment.init:command",
    "serve": "deployment.serve:command",
    "migrate": "deployment.migrate:command",
    "doctor": "doctor.command:command",
    "org": "organizations.org:command",
    "project": "organizations.project:command",
    "key": "keys.project_keys:command",
    "admin-key": "keys.admin_keys:command",
    "secrets": "keys.secrets:command",
    "policy": "policy.commands:command",
    "credits": "ledger.credits:command",
    "caps": "ledger.caps:command",
    "limits": "organizations.limits:command",
    "costs": "ledger.costs:command",
    "audit": "organizations.audit:command",
    "request": "requests:request",
    "requests": "requests:requests",
    "ledger": "ledger.commands:command",
    "test-upstream": "trial.test_upstream:command",
    "demo-engine": "trial.demo_engine:command",
}
"""The module and attribute of each command below this package, in the order of the help."""


class LazyGroup(click.Group):
    """Imports a command when it is used: importing Alembic takes longer than most commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or return None if there is none of this name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return getattr(importlib.import_module(f"tollhouse.cli.{module}"), attribute)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=example("tollhouse up"),
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_CONFIG_PATH,
    envvar=CONFIG_PATH_VARIABLE,
    show_envvar=True,
    help="The configuration file.",
)
@click.pass_context
def tollhouse(context: click.Context, *, config: Path) -> None:
    """Run and administer a Tollhouse deployment."""
    context.obj = config


def main() -> NoReturn:
    """Run the command. Exit with 0 on success, 1 on failure, 2 if the arguments are wrong."""
    with failures.rendered(as_json="--json" in sys.argv[1:]):
        code = tollhouse.main(prog_name="tollhouse", standalone_mode=False)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
