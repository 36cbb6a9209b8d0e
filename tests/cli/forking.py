"""One process that imports a verb once, and forks for each command of a script that runs it.

A command alone spends nearly all of its time with imports, and a guide runs twenty.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from tollhouse.cli.main import COMMANDS, main, tollhouse

BYTES_MAX = 200_000
CALLER = """#!{python} -IS
import json, os, socket, sys
arguments = [{command!r}, *sys.argv[1:]]
if not set(arguments) & {verbs!r} or os.environ.get("PYTHONPATH") != {source!r}:
    os.execv({command!r}, arguments)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forker:
    forker.connect({address!r})
    call = json.dumps([arguments, os.getcwd(), dict(os.environ)])
    socket.send_fds(forker, [call.encode()], [0, 1, 2])
    sys.exit(forker.recv(1)[0])
"""
"""`tollhouse` for scripts. What is no verb of these starts as it does for users."""


@contextmanager
def forking(command: Path, verbs: Iterable[str], environment: dict[str, str]) -> Generator[Path]:
    """A directory in which `tollhouse` forks for these verbs, and is `command` for others."""
    directory = command.parent / "forking"
    directory.mkdir()
    address = str(directory / "socket")
    script = directory / command.name
    source = environment["PYTHONPATH"]
    script.write_text(
        CALLER.format(
            python=sys.executable,
            command=str(command),
            verbs=set(verbs),
            source=source,
            address=address,
        ),
        encoding="utf-8",
    )
    script.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(listener.fileno())],
            env=environment,
            pass_fds=[listener.fileno()],
        )
    try:
        yield directory
    finally:
        process.kill()
        process.wait()


def serve(listener: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        caller, _ = listener.accept()
        with caller:
            call, files, _, _ = socket.recv_fds(caller, BYTES_MAX, 3)
            arguments, directory, variables = json.loads(call)
            for verb in COMMANDS.keys() & set(arguments):
                tollhouse.get_command(click.Context(tollhouse), verb)
            if os.fork() == 0:
                for number, file in enumerate(files):
                    os.dup2(file, number)
                os.chdir(directory)
                os.environ.clear()
                os.environ.update(variables)
                sys.argv = arguments
                run(caller)
            for file in files:
                os.close(file)


def run(caller: socket.socket) -> NoReturn:
    """Run the command, and end before the interpreter takes down what the forker has built."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except Exception:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    caller.send(bytes([code]))
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
