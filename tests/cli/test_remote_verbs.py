"""Generated verbs over HTTP: who they act as, what they send, and what they say of failures."""

import http.server
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.commands import Operator, refusal
from tollhouse.cli.verbs import profiles
from tollhouse.cli.verbs.commands import command
from tollhouse.cli.verbs.nouns import OFFERED
from tollhouse.cli.verbs.values import Days, Instant, LongText, Money

Answered = tuple[int, dict[str, Any], dict[str, str]]


def ok(body: dict[str, Any], **headers: str) -> Answered:
    return 200, body, headers


class Fake(http.server.BaseHTTPRequestHandler):
    """A gateway whose answers stand in a list; it remembers what it was asked."""

    answers: list[Answered] = []  # noqa: RUF012 - of one test
    asked: list[tuple[str, str, dict[str, str], Any]] = []  # noqa: RUF012 - of one test

    def answer(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked.append((self.command, self.path, headers, body))
        status, answer, extra = self.answers.pop(0)
        sent = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(sent)), **extra}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


for _method in ("GET", "POST", "PATCH", "PUT", "DELETE"):
    setattr(Fake, f"do_{_method}", Fake.answer)


@contextmanager
def gateway(*answers: Answered) -> Generator[str]:
    Fake.answers, Fake.asked = list(answers), []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def project(name: str, project_id: str) -> dict[str, Any]:
    return {"id": project_id, "name": name, "status": "active", "created_at": 0}


def page(*items: dict[str, Any], has_more: bool = False) -> dict[str, Any]:
    last_id = items[-1]["id"] if items else None
    return {"data": list(items), "has_more": has_more, "first_id": None, "last_id": last_id}


ONE, TWO = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"


@pytest.fixture
def remote(newcomer: Operator) -> Operator:
    newcomer.environment["TOLLHOUSE_ADMIN_KEY"] = "tha_secret"
    newcomer.environment["XDG_CONFIG_HOME"] = str(newcomer.directory)
    newcomer.secrets.append("tha_secret")
    return newcomer


def run(user: Operator, url: str, *arguments: str, exit_code: int = 0) -> Any:  # noqa: ANN401 - JSON
    ended = user.run(*arguments, "--json", exit_code=exit_code, TOLLHOUSE_URL=f"{url}/v1")
    return ended.error if exit_code else json.loads(ended.stdout)


def test_a_name_that_several_have_is_refused_with_their_ids(remote: Operator) -> None:
    with gateway((200, page(project("search", ONE), project("search", TWO)), {})) as url:
        refused = run(remote, url, "project", "show", "search", exit_code=2)

    assert ONE in refused["message"]
    assert TWO in refused["message"]


def test_a_name_means_the_object_that_works(remote: Operator) -> None:
    archived = {**project("search", ONE), "status": "archived"}
    first, second = page(archived, has_more=True), page(project("search", TWO))
    with gateway((200, first, {}), (200, second, {}), (200, project("search", TWO), {})) as url:
        assert run(remote, url, "project", "show", "search")["id"] == TWO

    assert [path for _, path, _, _ in Fake.asked] == [
        "/manage/v1/organization/projects?limit=100",
        f"/manage/v1/organization/projects?limit=100&after={ONE}",
        f"/manage/v1/organization/projects/{TWO}",
    ]
    assert {headers["authorization"] for _, _, headers, _ in Fake.asked} == {"Bearer tha_secret"}


def test_the_same_line_has_the_same_idempotency_key_until_another_is_wanted(
    remote: Operator,
) -> None:
    made = ok(project("search", ONE))
    replayed = 200, project("search", ONE), {"idempotent-replayed": "true"}
    with gateway(made, replayed, made, made) as url:
        run(remote, url, "project", "create", "search")
        said = remote.run("project", "create", "search", TOLLHOUSE_URL=url).stderr
        run(remote, url, "project", "create", "other")
        run(remote, url, "project", "create", "search", "--again")

    first, again, other, another = (headers["idempotency-key"] for _, _, headers, _ in Fake.asked)
    assert first == again
    assert len({first, other, another}) == 3
    assert "nothing was created now" in said


def test_a_rotation_is_no_creation_and_happens_each_time(remote: Operator) -> None:
    rotated = ok({"id": TWO, "value": "thp_x"})
    line = ("key", "rotate", TWO, "--project", ONE, "--overlap-seconds", "0")
    with gateway(rotated, rotated) as url:
        run(remote, url, *line)
        run(remote, url, *line)

    first, second = (headers["idempotency-key"] for _, _, headers, _ in Fake.asked)
    assert first != second


def test_what_was_left_out_is_not_sent_and_what_is_cleared_is_null(remote: Operator) -> None:
    policy = f"pol_{ONE.replace('-', '')}"
    found, edited = ok({"revision": 7}), ok({"id": policy})
    with gateway(found, edited) as url:
        run(
            *(remote, url, "policy", "edit", policy, "--mode", "enforcing", "--no-end-early"),
            *("--clear", "match-threshold-basis-points", "--clear", "project"),
        )

    assert Fake.asked[-1][3] == {
        "mode": "enforcing",
        "ends_answer_early": False,
        "match_threshold_basis_points": None,
        "project_ids": [],
        "revision": 7,
    }


def test_a_refusal_has_the_gateways_message_and_page(remote: Operator) -> None:
    error = {"code": "api_key_not_found", "message": "No such key.", "doc_url": "https://d.example"}
    with gateway((404, {"error": error}, {})) as url:
        refused = run(remote, url, "key", "show", TWO, "--project", ONE, exit_code=1)

    assert refused == {
        "code": "api_key_not_found",
        "message": "No such key. See https://d.example",
    }


def test_a_wrong_argument_exits_with_two(remote: Operator) -> None:
    error = {"code": "invalid_value", "message": "Invalid 'name'."}
    with gateway((400, {"error": error}, {})) as url:
        assert run(remote, url, "project", "create", " ", exit_code=2)["code"] == "invalid_value"


def test_what_can_be_repeated_is_sent_again(remote: Operator) -> None:
    limited = (429, {"error": {"code": "limited", "message": "m"}}, {"retry-after": "0"})
    with gateway(limited, (200, {"id": ONE, "name": "x"}, {})) as url:
        assert run(remote, url, "whoami")["id"] == ONE
    with gateway(limited) as url:
        refused = run(remote, url, "alerts", "test", ONE, exit_code=1)

    assert refused["code"] == "limited"
    assert len(Fake.asked) == 1


def test_a_redirect_does_not_take_the_key_along(remote: Operator) -> None:
    with gateway((302, {}, {"location": "http://127.0.0.1:1/"})) as url:
        refused = run(remote, url, "whoami", exit_code=1)

    assert refused["code"] == "unexpected_answer"


def test_without_a_gateway_the_command_says_what_to_do(remote: Operator) -> None:
    del remote.environment["TOLLHOUSE_ADMIN_KEY"]

    assert "tollhouse login" in remote.run("project", "list", exit_code=1).stderr
    named = remote.run("--config", "gone.toml", "project", "list", exit_code=1)
    assert "gone.toml: no such file" in named.stderr
    gone = run(remote, "http://127.0.0.1:1", "project", "list", exit_code=2)
    assert "TOLLHOUSE_ADMIN_KEY" in gone["message"]
    remote.environment["TOLLHOUSE_ADMIN_KEY"] = "tha_secret"
    refused = run(remote, "http://127.0.0.1:1", "alerts", "test", ONE, exit_code=1)
    assert refused["code"] == "gateway_unreachable"


def test_a_profile_is_for_its_owner_alone(
    remote: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(remote.directory))
    organization = ok({"id": ONE, "name": "Example Ltd"})
    with gateway(organization, organization) as url:
        login = ("login", url, "--profile", "work", "--json")
        command_line = [remote.tollhouse, *login]
        made = remote.bash(f"echo tha_secret | {' '.join(command_line)}").stdout
        file = Path(json.loads(made)["file"])
        assert file.stat().st_mode & 0o777 == 0o600
        assert json.loads(made)["organization"] == "Example Ltd"
        del remote.environment["TOLLHOUSE_ADMIN_KEY"]
        assert remote.json("whoami", "--profile", "work")["id"] == ONE
    file.chmod(0o644)
    with pytest.raises(profiles.ProfileUnusable):
        profiles.read("work")
    remote.run("logout", "--profile", "work")
    assert not file.exists()


@pytest.mark.parametrize(
    ("written", "value"),
    [("12.5", "12.5"), ("$1,000", "1000"), ("0.000000000001", "0.000000000001")],
)
def test_money_is_exact_as_people_write_it(written: str, value: str) -> None:
    assert Money().convert(written, None, None) == {"value": value, "currency": "usd"}


@pytest.mark.parametrize("written", ["-1", "much", "1e3", ""])
def test_what_is_no_money_is_refused(written: str) -> None:
    with pytest.raises(click.BadParameter):
        Money().convert(written, None, None)


def test_days_begin_and_end_at_midnight() -> None:
    now = datetime(2026, 11, 19, 15, 30, tzinfo=UTC)
    ago, ahead = Instant(is_past=True), Instant(is_past=False)

    begin, end = ago.convert("7d", None, None), ahead.convert("30d", None, None)

    assert isinstance(begin, Days)
    assert isinstance(end, Days)
    assert begin.instant(now) == datetime(2026, 11, 12, tzinfo=UTC).timestamp()
    assert end.instant(now) == datetime(2026, 12, 20, tzinfo=UTC).timestamp()
    assert ago.convert("2026-11-12", None, None) == datetime(2026, 11, 12, tzinfo=UTC).timestamp()


def test_a_long_text_comes_from_a_file_or_begins_with_two_signs(tmp_path: Path) -> None:
    file = tmp_path / "rule.txt"
    file.write_text("Is it?\n", encoding="utf-8")

    assert LongText().convert(f"@{file}", None, None) == "Is it?"
    assert LongText().convert("@@home", None, None) == "@home"
    assert "cannot be read" in refusal("rule", "lint", f"@{file}.gone")


def test_a_shell_completes_names(remote: Operator) -> None:
    listed = page(project("search", ONE), project("shop", TWO), project("other", ONE))
    with gateway((200, listed, {})) as url:
        completed = remote.run(
            _TOLLHOUSE_COMPLETE="bash_complete",
            COMP_WORDS="tollhouse project show s",
            COMP_CWORD="3",
            TOLLHOUSE_URL=url,
        )

    assert completed.stdout.splitlines() == ["plain,search", "plain,shop"]


@pytest.mark.parametrize("name", OFFERED)
def test_every_argument_and_option_says_what_it_is(name: str) -> None:
    options = [each for each in command(OFFERED[name]).params if isinstance(each, click.Option)]

    assert [each.name for each in options if not each.help] == []
