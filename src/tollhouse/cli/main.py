"""The `tollhouse` command: runs a subcommand and reports its failure with an exit code."""

import importlib
import sys
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click

from tollhouse.cli import failures
from tollhouse.cli.arguments import example
from tollhouse.settings import CONFIG_PATH_VARIABLE, DEFAULT_CONFIG_PATH


class Entry(NamedTuple):
    """A command that is not imported yet: its module and attribute below this package."""

    place: str
    summary: str


COMMANDS: Final = {
    "up": Entry(
        "trial.commands:up",
        "Start a trial: a database, an engine, the gateway and an organization with example usage.",
    ),
    "down": Entry("trial.commands:down", "Stop the trial and keep its data."),
    "reset": Entry(
        "trial.commands:reset",
        "Stop the trial and remove its configuration, keys, database and logs.",
    ),
    "init": Entry("deployment.init:command", "Set up a new deployment."),
    "serve": Entry("deployment.serve:command", "Run the gateway."),
    "migrate": Entry("deployment.migrate:command", "Bring the database's schema up to date."),
    "config": Entry(
        "deployment.config:command",
        "Check a configuration without a deployment, and compare it with another.",
    ),
    "doctor": Entry("doctor.command:command", "Check a deployment and change nothing."),
    "org": Entry(
        "organizations.org:command", "Create, list, suspend, close and move organizations."
    ),
    "project": Entry(
        "organizations.project:command",
        "Create, list, rename and archive projects, and choose their models.",
    ),
    "key": Entry(
        "keys.project_keys:command",
        "Create, list, rotate and revoke project keys.",
    ),
    "admin-key": Entry("keys.admin_keys:command", "Create, list and revoke Admin keys."),
    "session": Entry(
        "organizations.console_sessions:command", "List sessions of the console, and end them."
    ),
    "secrets": Entry(
        "keys.secrets:command",
        "Replace the master secret, and show what still needs the previous one.",
    ),
    "policy": Entry("policy.commands:command", "Write, test, publish, pause and list policies."),
    "credits": Entry("ledger.credits:command", "Grant credit and show the balance."),
    "caps": Entry(
        "ledger.caps:command",
        "Cap spending of an organization, project or key, by day, week, month or in all.",
    ),
    "alerts": Entry(
        "organizations.alerts:command",
        "Tell a URL or e-mail addresses about caps, credit, policies, holds and backends.",
    ),
    "limits": Entry(
        "organizations.limits:command",
        "Limit requests per minute, tokens per minute and concurrent requests.",
    ),
    "costs": Entry(
        "ledger.costs:command",
        "Show settled costs by the UTC day on which each request was admitted.",
    ),
    "attribution": Entry(
        "organizations.attribution:command",
        "Store what requests are for.",
    ),
    "audit": Entry("organizations.audit:command", "Show the latest changes, newest first."),
    "request": Entry(
        "requests.one_request:request",
        "Show the outcome of a request of any organization, by its X-Request-ID.",
    ),
    "requests": Entry("requests.listing:requests", "List the latest requests, newest first."),
    "ledger": Entry(
        "ledger.commands:command",
        "Verify balances, resolve unsettled holds and backfill past usage.",
    ),
    "archive": Entry(
        "archive.commands:command",
        "Move old days into Parquet files, and read them.",
    ),
    "backends": Entry(
        "models.backends:command",
        "List the replicas of all backends, leave one out, and return it.",
    ),
    "models": Entry(
        "models.commands:command", "Import models, backends and prices from another gateway."
    ),
    "scripted-engine": Entry(
        "trial.scripted_engine:command", "Run the scripted engine of a trial on loopback."
    ),
    "demo-engine": Entry(
        "trial.demo_engine:command", "Run a small real model with llama.cpp, on loopback."
    ),
}
"""In the order of the help. A summary is the first sentence of its command's own help."""
CHECKOUT: Final = Path(__file__).parents[3]
"""Where the tests lie, if this is no installed wheel."""


class LazyGroup(click.Group):
    """Imports a command when it is used: importing all of them takes ten times as long."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or return None if there is none of this name.

        The test upstream is a command of a checkout only, because the wheel has no tests.
        """
        del ctx
        if cmd_name == "test-upstream" and (CHECKOUT / "tests" / "upstream").is_dir():
            sys.path.append(str(CHECKOUT))
            return importlib.import_module("tests.upstream.command").command
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].place.partition(":")
        return getattr(importlib.import_module(f"tollhouse.cli.{module}"), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summaries of all commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


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
@click.version_option(package_name="tollhouse", message="%(prog)s %(version)s")
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
