"""`tollhouse test-upstream`, which only a checkout has."""

import shlex

from tests.cli.commands import Operator, free_port
from tests.cli.documents import read, scripts
from tests.cli.engines import running


def test_the_commands_of_its_page_work(newcomer: Operator) -> None:
    start, script = scripts(read("docs/architecture/test-upstream.md"))
    stated, here = "8090", str(free_port())
    _, *words = shlex.split(start.replace(stated, here))

    with running(newcomer, *words):
        answered = newcomer.bash(script.replace("curl ", "curl --fail ").replace(stated, here))

    assert stated in start
    assert stated in script
    assert answered.stdout.count("{") == script.count("curl")
