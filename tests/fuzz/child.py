"""`python -m tests.fuzz.child TARGET ARGUMENTS`: libFuzzer calls a target until it is told to stop.

The arguments are libFuzzer's. It ends the process itself. To merge inputs, it starts what is called
its program in a shell, with other arguments.
"""

import shlex
import sys
from importlib import import_module

import atheris

if __name__ == "__main__":
    with atheris.instrument_imports(  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - its module is typed in part
        include=["tollhouse"]
    ):
        module = import_module(f"tests.fuzz.{sys.argv[1]}")
    program = f"{shlex.quote(sys.executable)} -m tests.fuzz.child {sys.argv[1]}"
    atheris.Setup([program, *sys.argv[2:]], module.check)
    atheris.Fuzz()
