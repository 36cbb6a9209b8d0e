"""`tollhouse scripted-engine`, as people start it."""

import json
import shlex
import tomllib
from urllib.request import urlopen

from tests.cli.commands import SECONDS_MAX, Operator, free_port
from tests.cli.documents import read, scripts
from tests.cli.engines import offered, running


def test_it_says_where_it_is_and_how_to_offer_it(newcomer: Operator) -> None:
    with running(newcomer, "scripted-engine", "--port", "0", "--json") as announced:
        base_url, backend, model = offered(announced)

        with urlopen(f"{base_url}/models", timeout=SECONDS_MAX) as answer:  # noqa: S310 - loopback
            assert answer.status == 200
    assert list(backend.replicas) == [base_url]
    assert model.max_output_length <= model.context_length


def test_what_people_read_can_be_pasted(newcomer: Operator) -> None:
    port = free_port()

    with running(newcomer, "scripted-engine", "--port", str(port), lines=38) as announced:
        introduction, configuration = announced.split("\n\n", 1)

    assert f"http://127.0.0.1:{port}/v1" in introduction
    assert set(tomllib.loads(configuration.partition("\n\nPress CTRL-C")[0])) == {
        "backends",
        "models",
    }


def test_the_commands_of_its_guide_work(newcomer: Operator) -> None:
    start, script = scripts(read("docs/guides/scripted-engine.md"))
    stated, here = "8090", str(free_port())
    _, *words = shlex.split(start.replace(stated, here))

    with running(newcomer, *words):
        answered = newcomer.bash(script.replace("curl ", "curl --fail ").replace(stated, here))

    assert stated in start
    assert json.loads(answered.stdout)["choices"][0]["message"]["content"] == "The gate is"
