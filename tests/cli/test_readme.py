"""What the README says can be done, done as it says."""

import json
import re
import time
from typing import Any

import pytest

from tests.cli.commands import ROOT, Operator, free_port, remember_secrets
from tests.cli.documents import blocks, read, scripts
from tollhouse.cli.doctor.deployment import JOBS

README = read("README.md")


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
    assert "1 running" in looked
    assert f"held: {', '.join(JOBS)}" in looked
    assert "failure" not in looked
    newcomer.bash(f"{complete}complete -p tollhouse")


@pytest.mark.nightly
def test_trying_it_works_and_so_does_what_up_prints(curious: Operator) -> None:
    up, look, end, *_ = scripts(README)

    printed = curious.bash(up).stdout
    curious.environment.update(EXPORT.findall(printed))
    curl = printed[printed.index("\ncurl ") :].partition("\n\n")[0]
    answer = json.loads(curious.bash(curl).stdout)
    looked = _look_until_recorded(curious, look, answer["id"].removeprefix("chatcmpl-"))

    assert answer["choices"][0]["message"]["content"]
    assert "Total: " in looked
    assert "Card numbers" in looked
    curious.bash(end)
    assert list(curious.directory.iterdir()) == []


def _look_until_recorded(operator: Operator, look: str, request_id: str) -> str:
    """Records of requests are written in the background, twice a second."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        looked = operator.bash(look).stdout
        if request_id in looked.replace("-", ""):
            return looked
    raise AssertionError(f"no record of request {request_id}")


def test_the_start_page_tries_it_in_the_same_way() -> None:
    start = read("docs/index.md")

    assert scripts(start) == scripts(README)[:3]
    assert blocks(start, "") == blocks(README, "")[:1]


def json_documents(text: str) -> list[dict[str, Any]]:
    """The answers of several calls of curl stand beside each other."""
    decoder, found = json.JSONDecoder(), list[dict[str, Any]]()
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:].lstrip()
    return found


def test_every_link_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', README)

    assert links
    assert pictures
    assert [link for link in links + pictures if not (ROOT / link).exists()] == []
