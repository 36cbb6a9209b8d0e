"""Every verb explains itself, and ends its explanation with an example."""

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from tests.cli.commands import Operator
from tollhouse.cli.main import COMMANDS, tollhouse


def verbs(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from verbs(found, (*path, name))


HELPS = Path(__file__).with_name("help.txt")
SEPARATOR = "=== "
ALL_VERBS = list(verbs(tollhouse))


def find(path: tuple[str, ...]) -> click.Command:
    command: click.Command = tollhouse
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize("path", ALL_VERBS, ids=" ".join)
def test_help_ends_with_an_example_of_the_verb(path: tuple[str, ...]) -> None:
    example = help_of(path).split("Example:\n")[1].strip()
    assert example.startswith(" ".join(("tollhouse", *path)))


@pytest.mark.parametrize(
    "path", [path for path in ALL_VERBS if path and path != ("serve",)], ids=" ".join
)
def test_every_verb_but_serve_speaks_json(path: tuple[str, ...]) -> None:
    command = find(path)

    options = {option for parameter in command.params for option in parameter.opts}

    assert isinstance(command, click.Group) or "--json" in options


def test_a_shell_can_complete_verbs(newcomer: Operator) -> None:
    completed = newcomer.run(
        _TOLLHOUSE_COMPLETE="bash_complete", COMP_WORDS="tollhouse admin", COMP_CWORD="1"
    )

    assert completed.stdout == "plain,admin-key\n"


def test_an_unknown_verb_is_a_usage_error(newcomer: Operator) -> None:
    assert newcomer.run("orgs", exit_code=2).stderr.startswith("Usage:")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_commands_own_help(name: str) -> None:
    assert COMMANDS[name].summary == find((name,)).get_short_help_str(limit=1_000)


@cache
def imported(*arguments: str) -> set[str]:
    """The packages that a run of the command has imported."""
    code = (
        "import sys\n"
        f"sys.argv = ['tollhouse', *{arguments!r}]\n"
        "from tollhouse.cli.main import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_the_list_of_commands_imports_none_of_them() -> None:
    modules = imported("--help")

    assert not modules & {"alembic", "asyncpg", "prometheus_client", "rich"}
    assert not [name for name in modules if name.startswith("tollhouse.cli.") and "." in name[14:]]


def test_a_verb_imports_what_it_needs_alone() -> None:
    modules = imported("credits", "show", "--help")

    assert "tollhouse.cli.verbs.commands" in modules
    assert not modules & {"alembic", "asyncpg", "sqlalchemy", "tollhouse.evaluation"}
    assert not modules & {"rich", "tollhouse.app", "tollhouse.cli.verbs.host"}


@pytest.mark.parametrize("path", ALL_VERBS, ids=" ".join)
def test_the_help_is_what_was_reviewed(path: tuple[str, ...]) -> None:
    name = " ".join(("tollhouse", *path))

    assert helps().get(name) == help_of(path), "python -m tests.cli.test_help writes help.txt"


def help_of(path: tuple[str, ...]) -> str:
    """The help as it is printed, whatever the terminal of the tests is."""
    command = find(path)
    name = " ".join(("tollhouse", *path))
    context = click.Context(
        command,
        info_name=name,
        terminal_width=80,
        max_content_width=80,
        help_option_names=["-h", "--help"],
    )
    return command.get_help(context).rstrip()


def helps() -> dict[str, str]:
    """The reviewed helps by command."""
    parts = HELPS.read_text(encoding="utf-8").split(SEPARATOR)[1:]
    pairs = (part.split("\n", 1) for part in parts)
    return {name: text.strip("\n") for name, text in pairs}


if __name__ == "__main__":
    HELPS.write_text(
        "".join(
            f"{SEPARATOR}{' '.join(('tollhouse', *path))}\n\n{help_of(path)}\n\n"
            for path in ALL_VERBS
        ),
        encoding="utf-8",
    )
