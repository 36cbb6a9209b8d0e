"""Running the real command as an operator does, and watching its every word for secrets."""

import contextlib
import io
import json
import logging
import os
import pty
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import click
import pytest

from tests.support.wrong_clocks import own_clock
from tollhouse.base.errors import GatewayError
from tollhouse.cli import session
from tollhouse.cli.main import main, tollhouse
from tollhouse.cli.seeds import create_organization, create_project
from tollhouse.cli.session import Session
from tollhouse.projects.types import Project
from tollhouse.settings import load

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 180
OWN_PROCESS = frozenset(
    {"up", "down", "reset", "serve", "test-upstream", "demo-engine", "scripted-engine"}
)
"""Verbs that run on, or start and stop other processes."""

T = TypeVar("T")


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> dict[str, str]:
        """What a verb with `--json` says when it fails."""
        return json.loads(self.stderr)["error"]


@dataclass(frozen=True)
class Operator:
    """A directory with a `tollhouse.toml`, and the command to use in it.

    What is in `secrets` may never be printed again, by no command.
    """

    directory: Path
    environment: dict[str, str]
    secrets: list[str] = field(default_factory=list[str])

    @property
    def settings_path(self) -> Path:
        return self.directory / "tollhouse.toml"

    @property
    def tollhouse(self) -> str:
        return f"{self.environment['HOME']}/tollhouse"

    def run(self, *arguments: str, exit_code: int = 0, **environment: str) -> Finished:
        """Run a verb, in this process unless it lasts or starts others."""
        variables = {**self.environment, **environment}
        is_own_source = variables["PYTHONPATH"] == str(ROOT / "src")
        is_apart = not arguments or arguments[0] in OWN_PROCESS or "--help" in arguments
        if is_apart or not is_own_source:
            return self.shell([self.tollhouse, *arguments], environment, exit_code=exit_code)
        finished = self._in_process(arguments, variables)
        assert finished.exit_code == exit_code, finished
        self.refuse_secrets(finished.stdout + finished.stderr)
        return finished

    def _in_process(self, arguments: tuple[str, ...], environment: dict[str, str]) -> Finished:
        """Run a verb as its process would: with this directory, environment, input and output."""
        output, errors = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
            _kept_logging(),
            open(os.devnull, encoding="utf-8") as nothing,  # noqa: PTH123 - of the system
        ):
            patch.chdir(self.directory)
            patch.setattr(sys, "argv", [self.tollhouse, *arguments])
            patch.setattr(sys, "stdin", nothing)
            for name in set(os.environ) - set(environment):
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            # It keeps the folder of the first variable that it has seen.
            patch.setattr(tempfile, "tempdir", None)
            code = _exit_code()
        return Finished(code, _text(output), _text(errors))

    def shell(
        self, command: list[str], environment: Mapping[str, str], *, exit_code: int = 0
    ) -> Finished:
        ended = subprocess.run(
            command,
            cwd=self.directory,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        finished = Finished(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
        assert finished.exit_code == exit_code, finished
        self.refuse_secrets(finished.stdout + finished.stderr)
        return finished

    def bash(self, script: str, environment: Mapping[str, str] | None = None) -> Finished:
        """Run lines as they would be pasted; the first that fails ends it."""
        return self.shell(["bash", "-eu", "-c", script], environment or {})

    def refuse_secrets(self, text: str) -> None:
        shown = [secret for secret in self.secrets if secret in text]
        assert not shown, f"secrets in the output: {text}"

    def json(self, *arguments: str, exit_code: int = 0) -> Any:  # noqa: ANN401 - JSON
        """The one document on standard output; with `--json` nothing else is said."""
        finished = self.run(*arguments, "--json", exit_code=exit_code)
        assert finished.stderr == ""
        return json.loads(finished.stdout)

    def do(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do something as the operator, but not by the command."""
        return session.run(self.settings_path, work)

    def failure_code(self, *arguments: str) -> str:
        """The code of the failure that a verb ends with."""
        with pytest.raises(GatewayError) as failed:
            call("--config", str(self.settings_path), *arguments)
        return failed.value.code

    def created(self, *arguments: str) -> dict[str, Any]:
        """A key with its value, which from now on is a secret."""
        key = self.json(*arguments)
        self.secrets.append(key["value"])
        return key

    @contextmanager
    def serving(self, *arguments: str) -> Generator["Server", None, None]:
        """`tollhouse serve`, from its readiness to its orderly end."""
        process = subprocess.Popen(
            [self.tollhouse, "serve", *arguments],
            cwd=self.directory,
            # The library of the metrics leaves its files to the end of the process.
            env=self.environment | {"PYTHONWARNINGS": "error,ignore::ResourceWarning"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            announced = process.stdout.readline()
            assert "is ready on" in announced, process.communicate()
            server = Server(process, announced)
            yield server
        finally:
            process.terminate()
            _, rest = process.communicate(timeout=SECONDS_MAX)
        server.log.extend(rest.splitlines())
        assert process.returncode == 0, server.log
        self.refuse_secrets("\n".join(server.log))


@dataclass(frozen=True)
class Server:
    """A running service."""

    process: subprocess.Popen[str]
    announced: str
    log: list[str] = field(default_factory=list[str])

    def events(self) -> list[str]:
        """What the log has told so far; all of it when the service has ended."""
        return [json.loads(line)["event"] for line in self.log]

    def wait_for(self, event: str) -> None:
        """Read the log up to an event."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if json.loads(line)["event"] == event:
                return
        message = f"the log has ended without {event}"
        raise AssertionError(message)


@contextmanager
def _kept_logging() -> Generator[None]:
    """Take back what a verb changes for its process, and would change for all later tests."""
    root, uvicorn = logging.getLogger(), logging.getLogger("uvicorn")
    handlers, levels, hook = root.handlers, (root.level, uvicorn.level), sys.excepthook
    try:
        yield
    finally:
        root.handlers, sys.excepthook = handlers, hook
        root.setLevel(levels[0])
        uvicorn.setLevel(levels[1])
        logging.captureWarnings(capture=False)


def _exit_code() -> int:
    """Run the command of `sys.argv`. A bug has the code 1, as the interpreter gives it."""
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except Exception:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1


def _text(written: io.TextIOWrapper) -> str:
    written.flush()
    buffer = written.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def environment(tools: Path) -> dict[str, str]:
    """A clean one: no configuration of the machine's leaks in, but the name of the tests' run."""
    return {
        **{name: os.environ[name] for name in ("TOLLHOUSE_RUN",) if name in os.environ},
        "PATH": f"{tools}/forking:{tools}:{os.environ['PATH']}",
        "HOME": str(tools),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONWARNINGS": "error",
        **own_clock(),
    }


def install(tools: Path) -> None:
    """Put the console command of this tree into a directory, as an installation does."""
    script = tools / "tollhouse"
    script.write_text(
        f"#!{sys.executable}\nfrom tollhouse.cli.main import main\n\nmain()\n", encoding="utf-8"
    )
    script.chmod(0o755)


def remember_secrets(operator: Operator, *keys: str) -> None:
    """From now on, what `init` has written and shown is secret."""
    chosen = load(operator.settings_path, environment={}).secrets
    operator.secrets.extend([chosen.master, *keys])


def new_project(operator: Operator) -> str:
    """The ID of a project in an organization of its own."""

    async def create(session: Session) -> Project:
        owner = await create_organization(session, "Example Ltd")
        return await create_project(session, owner.id, "search")

    return str(operator.do(create).id)


def at_a_terminal(
    operator: Operator, arguments: list[str], answer: str, **environment: str
) -> Finished:
    """Run a command that may ask, and give it one answer."""
    controller, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [operator.tollhouse, *arguments],
            cwd=operator.directory,
            env={**operator.environment, **environment},
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(controller, f"{answer}\n".encode())
        stdout, stderr = process.communicate(timeout=SECONDS_MAX)
    finally:
        os.close(terminal)
        os.close(controller)
    return Finished(process.returncode, stdout, stderr)


def call(*arguments: str) -> object:
    """Call a verb without a process of its own: for setting up, and for reasons of refusals."""
    return tollhouse.main(list(arguments), standalone_mode=False)


def refusal(*arguments: str) -> str:
    """What is said to a call that is wrong in itself."""
    with pytest.raises(click.UsageError) as refused:
        call(*arguments)
    return refused.value.format_message()


async def execute(url: str, statements: str) -> None:
    """Change a database behind the product's back."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
