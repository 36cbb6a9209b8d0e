"""The guide to models and backends, and the example that `init` writes: both are true."""

import re
import tomllib
from typing import Any

import msgspec
from msgspec import NODEFAULT, inspect

from tests.cli.commands import Operator, new_project
from tests.cli.documents import blocks, read, scripts
from tollhouse.catalog import rules
from tollhouse.catalog.types import Backend, Model, Pricing
from tollhouse.settings import load

PATH = "docs/guides/models-and-backends.md"
GUIDE = read(PATH)
LINES = GUIDE.splitlines()
COMMENTED = re.compile(r"^# (\[(?:backends|models)\..+\]|\w+ = .+)$")


def catalog_of(text: str) -> dict[str, Any]:
    (block,) = blocks(text, "toml")
    return tomllib.loads(block)


def rows_below(heading: str) -> dict[str, str]:
    """Names and defaults of the first table below a heading."""
    section = GUIDE.split(f"\n{heading}\n")[1].split("\n#")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE))


def fields_of(type_: type) -> dict[str, str]:
    info = inspect.type_info(type_)
    assert isinstance(info, inspect.StructType)
    return {field.name: default_of(field) for field in info.fields}


def default_of(field: inspect.Field) -> str:
    default = field.default
    if field.default_factory is not NODEFAULT:
        default = field.default_factory()
    if default is NODEFAULT:
        return "needed"
    if isinstance(default, dict):
        table = msgspec.convert(default, dict[str, str])
        return ", ".join(f"{name}: {value}" for name, value in table.items()) or "none"
    if isinstance(default, tuple | frozenset):
        return ", ".join(sorted(msgspec.convert(default, list[str]))) or "none"
    if isinstance(default, bool):
        return str(default).lower()
    return str(default) if default not in (None, "") else "none"


def test_the_tables_name_every_setting_with_its_default() -> None:
    of_backend = fields_of(Backend)
    del of_backend["api_key"], of_backend["ca_certificates"]
    of_backend |= {"api_key_variable": "none", "api_key_file": "none", "ca_file": "none"}

    assert rows_below("## Backends") == of_backend
    assert rows_below("## Models") == fields_of(Model)
    assert rows_below("### Prices") == fields_of(Pricing)


def test_every_word_that_a_setting_may_hold_is_named() -> None:
    for type_ in (Backend, Model):
        info = inspect.type_info(type_)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            rows = "".join(line for line in LINES if line.startswith(f"| `{field.name}` |"))
            missing = {word for word in words_of(field.type) if word not in rows}
            assert missing == set(), field.name


def words_of(node: inspect.Type) -> set[str]:
    match node:
        case inspect.LiteralType(values):
            return {str(value) for value in values}
        case inspect.CollectionType(item_type=item) | inspect.VarTupleType(item_type=item):
            return words_of(item)
        case inspect.UnionType(types):
            return set[str]().union(*map(words_of, types))
        case _:
            return set()


def test_the_example_of_the_guide_is_a_sound_catalog() -> None:
    tree = catalog_of(GUIDE)
    del tree["backends"]["provider"]["api_key_variable"]

    catalog = rules.parse(tree["backends"], tree["models"])

    assert list(catalog.models) == ["example/small", "example/vision"]


def test_the_commands_of_the_guide_can_be_followed(patient: Operator) -> None:
    look, reload, grant, narrow, take_back = scripts(GUIDE)
    patient.environment["PROJECT_ID"] = new_project(patient)
    (owner,) = patient.json("org", "list")["data"]
    patient.environment["ORGANIZATION_ID"] = owner["id"]

    with patient.serving() as server:
        patient.environment["TOLLHOUSE_PID"] = str(server.process.pid)
        assert "models: 0, backends: 0" in patient.bash(look).stdout
        patient.bash(reload)
        server.wait_for("reloaded")
    assert patient.bash(grant).stdout.count("identity") == 2
    assert patient.bash(narrow).stdout.count("example/small") == 2
    taken_back = patient.bash(take_back).stdout
    assert re.search(r"^allowed_models +-$", taken_back, re.MULTILINE)
    assert re.search(r"^deleted +yes$", taken_back, re.MULTILINE)


def test_the_example_that_init_writes_is_sound_when_its_comments_are_taken_away(
    patient: Operator,
) -> None:
    lines = patient.settings_path.read_text(encoding="utf-8").splitlines()
    begin = lines.index("# [backends.engine]")
    end = lines.index("[secrets]")
    example = [COMMENTED.sub(r"\1", line) for line in lines[begin:end]]
    patient.settings_path.write_text(
        "\n".join([*lines[:begin], *example, *lines[end:], ""]), encoding="utf-8"
    )

    before = [line for line in lines[begin:end] if not line.startswith("#")]
    settings = load(patient.settings_path, {"ENGINE_API_KEY": "sk-hunter2"})
    catalog = rules.parse(settings.backends, settings.models)

    assert set(before) == {""}, "nothing of it holds until it is wanted"
    assert catalog.backends["engine"].api_key == "sk-hunter2"
    assert list(catalog.models) == ["example/model"]
