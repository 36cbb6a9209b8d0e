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
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from tollhouse.cli.main import COMMANDS, main, tollhouse

BYTES_MAX = 200_000
CALLER = """#!{0} -IS
import json, os, socket, sys
arguments = [{1!r}, *sys.argv[1:]]
if not set(arguments) & {2!r} or os.environ.get("PYTHONPATH") != {3!r}:
    os.execv({1!r}, arguments)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forker:
    forker.connect({4!r})
    call = json.dumps([arguments, os.getcwd(), dict(os.environ)])
    socket.send_fds(forker, [call.encode()], [0, 1, 2])
    sys.exit(forker.recv(1)[0])
"""
"""What is none of its verbs starts as it does for users. Limits of the shell stay behind."""


@contextmanager
def forking(command: Path, verbs: set[str], environment: dict[str, str]) -> Generator[None]:
    """Put a `tollhouse` that forks for these verbs into the folder `forking` beside `command`."""
    script = command.parent / "forking" / command.name
    script.parent.mkdir()
    address = f"{script}.socket"
    place = sys.executable, str(command), verbs, environment["PYTHONPATH"], address
    script.write_text(CALLER.format(*place), encoding="utf-8")
    script.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        number = listener.fileno()
        forker = [sys.executable, "-P", __file__, str(number)]
        process = subprocess.Popen(forker, env=environment, pass_fds=[number])
    try:
        yield
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
    os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
