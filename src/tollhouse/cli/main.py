"""The `tollhouse` command: runs a subcommand and reports its failure with an exit code."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click

from tollhouse.cli import failures
from tollhouse.cli.arguments import example
from tollhouse.settings import CONFIG_PATH_VARIABLE, DEFAULT_CONFIG_PATH


class Entry(NamedTuple):
    """A command that is not imported yet.

    `place`: its module and attribute below this package, if it is written by hand. `by_hand`: the
    places of those verbs of a noun that are not made from operations.
    """

    summary: str
    place: str = ""
    by_hand: Mapping[str, str] = {}


COMMANDS: Final[Mapping[str, Entry]] = {
    "up": Entry(
        "Start a trial: a database, an engine, the gateway and an organization with example usage.",
        "trial.commands:up",
    ),
    "down": Entry("Stop the trial and keep its data.", "trial.commands:down"),
    "reset": Entry(
        "Stop the trial and remove its configuration, keys, database and logs.",
        "trial.commands:reset",
    ),
    "init": Entry("Set up a new deployment.", "deployment.init:command"),
    "serve": Entry("Run the gateway.", "deployment.serve:command"),
    "migrate": Entry("Bring the database's schema up to date.", "deployment.migrate:command"),
    "config": Entry(
        "Check a configuration without a deployment, and compare it with another.",
        "deployment.config:command",
    ),
    "doctor": Entry("Check a deployment and change nothing.", "doctor.command:command"),
    "login": Entry(
        "Store the address of a gateway and an Admin key, for commands without a configuration.",
        "verbs.login:login",
    ),
    "logout": Entry("Remove a stored Admin key from this machine.", "verbs.login:logout"),
    "whoami": Entry(
        "Show the organization that the command works on, and which judge the gateway has."
    ),
    "org": Entry(
        "Create, list, suspend, close and move organizations.",
        by_hand={
            "create-from": "organizations.org_file:create_from",
            "export": "moves.commands:export",
            "import": "moves.commands:import_",
            "release": "moves.commands:release",
            "activate": "moves.commands:activate",
            "cancel-move": "moves.commands:cancel_move",
            "routes": "moves.commands:routes",
        },
    ),
    "project": Entry("Create, list, rename and archive projects, and choose their models."),
    "key": Entry(
        "Create, list, rotate and revoke project keys.",
    ),
    "admin-key": Entry("Create, list, narrow and revoke Admin keys."),
    "session": Entry("List sessions of the console, and end them."),
    "secrets": Entry(
        "Show what needs the present and the previous master secret.",
        "keys.secrets:command",
    ),
    "policy": Entry(
        "Write, test, publish, pause and list policies.",
        by_hand={
            "diff": "policy.difference:diff",
            "backtest": "policy.backtest:backtest",
            "calibrate": "policy.calibrate:calibrate",
            "whatif": "policy.whatif:whatif",
        },
    ),
    "rule": Entry("Try a rule that is not part of a policy yet."),
    "credits": Entry("Show the balance, and grant credit."),
    "caps": Entry(
        "Cap spending of an organization, project or key, by day, week, month or in all."
    ),
    "alerts": Entry(
        "Tell a URL or e-mail addresses about caps, credit, policies, holds and backends."
    ),
    "limits": Entry(
        "Limit requests per minute, tokens per minute and concurrent requests.",
    ),
    "costs": Entry("Show settled costs by the UTC day on which each request was admitted."),
    "usage": Entry("Show tokens, requests and their cost by hour or day."),
    "audit": Entry(
        "Show the latest changes, newest first.",
        by_hand={"verify": "organizations.audit_verify:verify"},
    ),
    "request": Entry("Show the outcome of a request, by its X-Request-ID."),
    "requests": Entry("List the latest requests, newest first."),
    "ledger": Entry(
        "Verify balances, resolve unsettled holds and backfill past usage.",
        "ledger.commands:command",
    ),
    "archive": Entry(
        "Move old days into Parquet files, and read them.", "archive.commands:command"
    ),
    "backends": Entry(
        "List the replicas of all backends, leave one out, and return it.",
        "models.backends:command",
    ),
    "models": Entry(
        "List the models, and import them with backends and prices from another gateway.",
        by_hand={"import": "models.commands:import_"},
    ),
    "scripted-engine": Entry(
        "Run the scripted engine of a trial on loopback.", "trial.scripted_engine:command"
    ),
    "demo-engine": Entry(
        "Run a small real model with llama.cpp, on loopback.", "trial.demo_engine:command"
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
        entry = COMMANDS[cmd_name]
        if not entry.place:
            from tollhouse.cli.verbs.nouns import noun  # noqa: PLC0415 - for these commands alone

            return noun(cmd_name, entry.summary, entry.by_hand)
        module, _, attribute = entry.place.partition(":")
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
