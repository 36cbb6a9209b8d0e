"""The `tollhouse` command: finds the verb, and turns every failure into a sentence and a code."""

import importlib
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from tollhouse.cli import failures
from tollhouse.cli.arguments import example
from tollhouse.settings import CONFIG_PATH_VARIABLE, DEFAULT_CONFIG_PATH

VERBS: Final = (
    "up",
    "down",
    "reset",
    "init",
    "serve",
    "migrate",
    "doctor",
    "org",
    "project",
    "key",
    "admin-key",
    "secrets",
    "policy",
    "credits",
    "caps",
    "limits",
    "costs",
    "audit",
    "request",
    "requests",
    "ledger",
    "test-upstream",
    "demo-engine",
)


class Verbs(click.Group):
    """Loads a verb when it is named: Alembic takes longer to import than most verbs to run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one meets them."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Each verb's module has it under the name `command`."""
        del ctx
        if cmd_name not in VERBS:
            return None
        return importlib.import_module(f"tollhouse.cli.{cmd_name.replace('-', '_')}").command


@click.group(
    cls=Verbs,
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
    """Exit with 0 when it worked, 1 when the operation failed, 2 when it was called wrongly."""
    with failures.rendered(as_json="--json" in sys.argv[1:]):
        code = tollhouse.main(prog_name="tollhouse", standalone_mode=False)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
