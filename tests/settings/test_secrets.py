"""Secrets have no default, and one that could be guessed is refused before anything listens."""

import json
import re
from pathlib import Path

import pytest

import tollhouse
from tollhouse.settings import InvalidSettings, Settings, load

GOOD = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"
OTHER = "Zx9cVb2nMl5kJh8gFd1sAqW4eRt7yUiO"
DATABASE = '[database]\nurl = "postgresql://127.0.0.1/tollhouse"\n'

WEAK = {
    "empty": "",
    "one character": "x",
    "blank": " " * 40,
    "one character too short": GOOD[:-1],
    "one character repeated": "a" * 64,
    "seven characters repeated": "abcdefg" * 8,
    "eight characters repeated": "abcdefgh" * 8,
    "a word repeated": "password" * 8,
    "the usual placeholder repeated": "change-me-" * 6,
    "the usual placeholder repeated and cut": "change-me-change-me-change-me-chang",
    "all digits repeated": "0123456789" * 4,
    "all hexadecimal digits repeated": "0123456789abcdef" * 2,
    "a good half repeated": GOOD[:16] * 2,
}


SOURCE = Path(tollhouse.__file__).parent
KEYED = re.compile(r"\bhmac\.(?:digest|new)\(|\b(?:AESGCM|HKDF)\(|\bblake2[bs]\(.*key=")
SOURCES_OF_KEYS = {
    "alerts/rules.py": "32 random bytes",
    "evaluation/judge/request_keys.py": "master",
    "inference/upstream_request.py": "master",
    "keys/directory.py": "64 random bytes",
    "reports/cursors.py": "master",
    "sessions/tokens.py": "master",
    "storage/master_secrets.py": "master",
    "storage/sealing.py": "master, and 32 random bytes per day",
}
"""Where each module that signs, hashes with a key or encrypts has its keys from."""


def load_secrets(folder: Path, *, master: str, previous: tuple[str, ...] = ()) -> Settings:
    accepted = f"previous_masters = {json.dumps(previous)}\n" if previous else ""
    path = folder / "tollhouse.toml"
    path.write_text(f'{DATABASE}[secrets]\nmaster = "{master}"\n{accepted}', encoding="utf-8")
    return load(path, {})


def test_random_secrets_that_differ_are_taken(tmp_path: Path) -> None:
    settings = load_secrets(tmp_path, master=GOOD, previous=(OTHER,))

    assert settings.secrets.master == GOOD
    assert settings.secrets.previous_masters == [OTHER]


@pytest.mark.guarantee("T48")
@pytest.mark.parametrize("weak", WEAK.values(), ids=WEAK)
def test_a_weak_master_secret_is_refused_without_being_shown(tmp_path: Path, weak: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_secrets(tmp_path, master=weak)

    assert str(refused.value).startswith("secrets.master: too weak")
    assert len(weak) < 8 or weak not in str(refused.value)


@pytest.mark.guarantee("T48")
def test_every_key_comes_from_a_checked_secret_or_is_drawn() -> None:
    """A module that is new here needs a secret that the tests of this file refuse if it is weak."""
    modules = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if KEYED.search(path.read_text("utf-8"))
    }

    assert modules == SOURCES_OF_KEYS.keys()


def test_previous_master_secrets_are_accepted_after_the_newest(tmp_path: Path) -> None:
    previous = (GOOD[::-1], OTHER[::-1])

    settings = load_secrets(tmp_path, master=GOOD, previous=previous)

    assert settings.secrets.master_bytes() == [text.encode() for text in (GOOD, *previous)]


@pytest.mark.guarantee("T48")
@pytest.mark.parametrize("weak", WEAK.values(), ids=WEAK)
def test_a_weak_previous_master_secret_is_refused_without_being_shown(
    tmp_path: Path, weak: str
) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_secrets(tmp_path, master=GOOD, previous=(OTHER[::-1], weak))

    assert str(refused.value).startswith("secrets.previous_masters[1]: too weak")
    assert len(weak) < 8 or weak not in str(refused.value)


@pytest.mark.parametrize("previous", [(GOOD,), (OTHER[::-1], OTHER[::-1])])
def test_a_previous_master_secret_is_no_other_secret(
    tmp_path: Path, previous: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidSettings, match="must differ"):
        load_secrets(tmp_path, master=GOOD, previous=previous)


def test_there_are_at_most_three_previous_master_secrets(tmp_path: Path) -> None:
    four = tuple(f"{OTHER}{number}" for number in range(4))

    with pytest.raises(InvalidSettings, match=r"\$\.secrets\.previous_masters"):
        load_secrets(tmp_path, master=GOOD, previous=four)


URLS = (
    "postgresql://127.0.0.1/tollhouse",
    "postgres://role@db.example:5432/tollhouse",
    "postgresql://role:p%40ss:w%2Ford@db.example:5432/tollhouse?sslmode=require",
    "postgresql://role:!$&'()*+,;=-._~@db-1.example,db-2.example:5433/tollhouse",
    "postgresql://role@[::1]:5432/tollhouse",
    "postgresql://role@%2Fvar%2Frun%2Fpostgresql/tollhouse",
    "postgresql:///tollhouse?host=/var/run/postgresql&port=5433",
    "postgresql://role@/tollhouse",
    "postgresql://db.example",
    "postgresql://127.0.0.1/tollhouse?options=-csynchronous_commit%3Doff",
)
MALFORMED_URLS = {
    "a slash": "postgresql://role:hunter2/hunter2@db.example:5432/tollhouse",
    "a slash after digits": "postgresql://role:22/hunter2@db.example:5432/tollhouse",
    "a question mark": "postgresql://role:hunter2?hunter2@db.example/tollhouse",
    "a question mark after digits": "postgresql://role:22?hunter2@db.example/tollhouse",
    "a question mark and an option": "postgresql://role:22?a=hunter2@db.example/tollhouse",
    "a hash": "postgresql://role:22#hunter2@db.example/tollhouse",
    "an at sign": "postgresql://role:22@hunter2@db.example/tollhouse",
    "a bracket": "postgresql://role:[hunter2@db.example/tollhouse",
    "a space": "postgresql://role:22 hunter2@db.example/tollhouse",
    "a line's end": "postgresql://role:hunter2@db.example/tollhouse\\n",
    "no scheme": "role:hunter2@db.example/tollhouse",
    "another scheme": "mysql://role:hunter2@db.example/tollhouse",
    "a port that is none": "postgresql://role@db.example:hunter2/tollhouse",
    "a keyword string": "host=db.example password=hunter2",
    "nothing": "",
}


def load_url(folder: Path, url: str) -> Settings:
    path = folder / "tollhouse.toml"
    secrets = f'[secrets]\nmaster = "{GOOD}"\n'
    path.write_text(f'[database]\nurl = "{url}"\n{secrets}', encoding="utf-8")
    return load(path, {})


@pytest.mark.parametrize("url", URLS)
def test_an_address_of_a_database_is_taken_as_it_is(tmp_path: Path, url: str) -> None:
    assert load_url(tmp_path, url).database.url == url


@pytest.mark.parametrize("url", MALFORMED_URLS.values(), ids=MALFORMED_URLS)
def test_a_malformed_address_is_refused_without_being_shown(tmp_path: Path, url: str) -> None:
    """Its password may stand in any part of it."""
    with pytest.raises(InvalidSettings) as refused:
        load_url(tmp_path, url)

    assert str(refused.value).startswith("database.url: not of the form")
    assert "hunter2" not in str(refused.value)
    assert "22" not in str(refused.value)
    assert refused.value.__cause__ is None


def load_redis(folder: Path, url: str) -> Settings:
    path = folder / "tollhouse.toml"
    secrets = f'[secrets]\nmaster = "{GOOD}"\n'
    path.write_text(f'{DATABASE}{secrets}[redis]\nurl = "{url}"\n', encoding="utf-8")
    return load(path, {})


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1",
        "redis://127.0.0.1:6379/0",
        "rediss://user:p%40ss@cache.example:6380/15?ssl_cert_reqs=required",
        "redis://:pass@[::1]:6379",
    ],
)
def test_an_address_of_redis_is_taken_as_it_is(tmp_path: Path, url: str) -> None:
    assert load_redis(tmp_path, url).redis.url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cache.example:6379",
        "http://cache.example",
        "redis://:hunter2@hunter2@cache.example",
        "redis://:22/hunter2@cache.example",
        "redis://:22?hunter2@cache.example",
        "redis://cache.example:hunter2/0",
        "redis://cache.example/hunter2",
    ],
)
def test_a_malformed_address_of_redis_is_refused_without_being_shown(
    tmp_path: Path, url: str
) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_redis(tmp_path, url)

    assert str(refused.value).startswith("redis.url: not of the form")
    assert "hunter2" not in str(refused.value)
    assert "22" not in str(refused.value)


@pytest.mark.guarantee("T45")
def test_a_missing_secret_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_text(f"{DATABASE}[secrets]\n", encoding="utf-8")

    with pytest.raises(InvalidSettings, match="missing required field `master`"):
        load(path, {})
