"""What the README says can be done, done as it says."""

import json
import re
from typing import Any

from msgspec import NODEFAULT, UNSET, inspect

from tests.cli.commands import ROOT, Operator, free_port, remember_secrets
from tests.cli.documents import read, scripts
from tollhouse.cli.doctor.deployment import JOBS
from tollhouse.cli.main import COMMANDS
from tollhouse.settings import Settings

README = read("README.md")
CATALOG = ("backends", "models", "judge")
"""Their settings stand in a guide of their own."""


# Nobody has configured one yet; who is not let in gets 401.
MODELS = 'curl --header "Authorization: Bearer $TOLLHOUSE_PROJECT_KEY" "$TOLLHOUSE_URL/v1/models"'
EXPORT = re.compile(r"^export (\w+)=(\S+)$", re.MULTILINE)
CURL = re.compile(r"^curl .+\n", re.MULTILINE)


def test_setting_up_works_and_so_does_what_init_prints(newcomer: Operator, fresh_url: str) -> None:
    *_, init, serve, ask, look, complete = scripts(README)
    newcomer.environment.update(
        {
            "DATABASE_URL": fresh_url,
            "TOLLHOUSE_SERVER__PORT": str(free_port()),
            "TOLLHOUSE_SERVER__PROBE_PORT": str(free_port()),
            "TOLLHOUSE_SERVER__WORKERS": "1",
        }
    )

    printed = newcomer.bash(init).stdout
    exported = dict(EXPORT.findall(printed))
    newcomer.environment.update(exported)
    remember_secrets(newcomer, exported["TOLLHOUSE_ADMIN_KEY"], exported["TOLLHOUSE_PROJECT_KEY"])

    assert serve == "tollhouse serve\n"
    assert f"\n{serve}" in printed
    with newcomer.serving():
        answers = newcomer.bash("".join(CURL.findall(printed)) + ask + MODELS).stdout
        looked = newcomer.bash(look).stdout
    keys, projects, keys_again, created, models = json_documents(answers)
    assert [key["name"] for key in keys["data"]] == ["made by tollhouse init"]
    assert [project["name"] for project in projects["data"]] == ["default"]
    assert keys_again == keys
    assert created["name"] == "search"
    assert models == {"object": "list", "data": []}
    assert f"project {created['id']}" in looked
    assert looked.count("is used by a running Tollhouse") == 2
    assert "1 running, accepting pepper versions [1]" in looked
    assert f"held: {', '.join(JOBS)}" in looked
    assert "failure" not in looked
    newcomer.bash(f"{complete}complete -p tollhouse")


def test_trying_it_works_and_so_does_what_up_prints(curious: Operator) -> None:
    up, look, end, *_ = scripts(README)

    printed = curious.bash(up).stdout
    curious.environment.update(EXPORT.findall(printed))
    curl = printed[printed.index("\ncurl ") :].partition("\n\n")[0]
    answer = json.loads(curious.bash(curl).stdout)
    looked = curious.bash(look).stdout

    assert answer["choices"][0]["message"]["content"]
    assert answer["id"].removeprefix("chatcmpl-") in looked.replace("-", "")
    assert "Total: " in looked
    assert "Legal advice" in looked
    curious.bash(end)
    assert list(curious.directory.iterdir()) == []


def test_the_start_page_tries_it_in_the_same_way() -> None:
    assert scripts(read("docs/index.md")) == scripts(README)[:3]


def json_documents(text: str) -> list[dict[str, Any]]:
    """The answers of several calls of curl stand beside each other."""
    decoder, found = json.JSONDecoder(), list[dict[str, Any]]()
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:].lstrip()
    return found


def test_the_table_of_settings_is_complete_and_its_defaults_are_true() -> None:
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (.+?) \|", README, re.MULTILINE)

    assert dict(rows) == {
        f"{section.name}.{field.name}": default_of(field)
        for section in fields_of(inspect.type_info(Settings))
        if section.name not in CATALOG
        for field in fields_of(section.type)
    }


def fields_of(node: inspect.Type) -> tuple[inspect.Field, ...]:
    assert isinstance(node, inspect.StructType)
    return node.fields


def default_of(field: inspect.Field) -> str:
    if isinstance(field.default, bool):
        return str(field.default).lower()
    return "none" if field.default in (NODEFAULT, UNSET, None) else str(field.default)


def test_the_overview_names_every_verb_and_every_link_leads_somewhere() -> None:
    assert re.findall(r"^\| `tollhouse ([\w-]+)`", README, re.MULTILINE) == list(COMMANDS)
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
