"""The guide to the first completion, followed from a migrated database to its end."""

import json
import re
import shlex
import shutil
from decimal import Decimal

import pytest

from tests.cli.commands import Operator, free_port
from tests.cli.documents import blocks, read, scripts
from tests.cli.engines import running
from tollhouse.cli.trial.demo_engine import configuration
from tollhouse.trial.model_file import model_file
from tools import sdks

GUIDE = read("docs/guides/first-completion.md")
ANTHROPIC_SDK, *_, PYTHON_SDK = sdks.PYTHON_SDKS
ASKING = ("createChatCompletion", "createMessage")
PROMPT_USD = Decimal("0.0000001")
COMPLETION_USD = Decimal("0.0000004")
WORDS_AROUND = 4
"""Lines that the engine prints around its configuration."""


def value(printed: str, name: str) -> str:
    """What stands beside a name in the last table that has it."""
    return re.findall(rf"^{name} +(\S+)", printed, re.MULTILINE)[-1]


def prepare(reader: Operator) -> None:
    """Ports that are free, and the SDKs where a reader would have installed them."""
    reader.environment["TOLLHOUSE_SERVER__PORT"] = port = str(free_port())
    reader.environment["TOLLHOUSE_URL"] = f"http://127.0.0.1:{port}"
    reader.environment["PATH"] = f"{sdks.python_of(PYTHON_SDK).parent}:{reader.environment['PATH']}"
    names = ("completion.py", "message.py", "completion.mjs")
    for name, program in zip(names, blocks(GUIDE, "python") + blocks(GUIDE, "js"), strict=True):
        (reader.directory / name).write_text(program, encoding="utf-8")
    for sdk in (PYTHON_SDK, ANTHROPIC_SDK, sdks.NODE_SDK):
        assert sdks.is_prepared(sdk), "run `bash .ci/run sdks`"
    modules = sdks.HOME / sdks.NODE_SDK / "node_modules"
    (reader.directory / "node_modules").symlink_to(modules)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node on this machine")
def test_a_new_reader_gets_from_a_migrated_database_to_a_paid_answer(patient: Operator) -> None:
    customer, key, engine, doctor, serve, *asking, look = scripts(GUIDE)
    model, whole, stream, python, node, message = asking
    of_anthropic = f"{sdks.python_of(ANTHROPIC_SDK).parent}:{patient.environment['PATH']}"
    prepare(patient)

    patient.environment["PROJECT_ID"] = value(patient.bash(customer).stdout, "id")
    secret = value(patient.bash(key).stdout, "value")
    patient.environment["TOLLHOUSE_PROJECT_KEY"] = secret
    patient.secrets.append(secret)

    # The port and the model are the machine's, not the guide's.
    _, *words = shlex.split(engine)
    here = ("--port", "0", "--model-file", str(model_file()))
    lines = configuration("").count("\n") + WORDS_AROUND
    with running(patient, *words, *here, lines=lines) as printed:
        tables = printed[printed.index("[backends") : printed.index("Press CTRL-C")]
        with patient.settings_path.open("a", encoding="utf-8") as file:
            file.write(tables)
        assert "failure" not in patient.bash(doctor).stdout
        assert serve == "tollhouse serve\n"
        with patient.serving():
            assert json.loads(patient.bash(model).stdout)["is_ready"]
            usage = json.loads(patient.bash(whole).stdout)["usage"]
            streamed = patient.bash(stream).stdout
            assert re.search(r"^\d+ tokens$", patient.bash(python).stdout, re.MULTILINE)
            assert patient.bash(node).stdout.strip()
            assert patient.bash(message, {"PATH": of_anthropic}).stdout.strip()

    assert streamed.endswith("data: [DONE]\n\n")
    looked = patient.bash(look).stdout
    found = patient.json("requests")["data"]
    records = [record for record in found if record["operation"] in ASKING]
    cost = usage["prompt_tokens"] * PROMPT_USD + usage["completion_tokens"] * COMPLETION_USD
    costs = [Decimal(record["cost"]["value"]) for record in records]
    assert [record["status"] for record in records] == [200] * 5
    assert all(record["id"] in looked for record in records)
    assert cost == costs[-1]
    assert 5 - sum(costs) == Decimal(value(looked, "balance"))
