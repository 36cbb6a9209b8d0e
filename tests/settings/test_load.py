"""The configuration: all of it is sound, or nothing of it is used and the message says why."""

from pathlib import Path

import pytest

from tollhouse.settings import DEFAULT_CONFIG_PATH, InvalidSettings, Settings, load

MASTER = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"
PEPPER = "Zx9cVb2nMl5kJh8gFd1sAqW4eRt7yUiO"
DATABASE = """
[database]
url = "postgresql://127.0.0.1/tollhouse"
"""
SECRETS = f"""
[secrets]
master = "{MASTER}"
"""
SOUND = DATABASE + SECRETS
HUGE_FILE_BYTES = 64 * 1024 * 1024


def read(folder: Path, text: str, **environment: str) -> Settings:
    path = folder / "tollhouse.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, environment)


def refusal(folder: Path, text: str, **environment: str) -> str:
    with pytest.raises(InvalidSettings) as refused:
        read(folder, text, **environment)
    return str(refused.value)


def test_a_minimal_file_is_completed_by_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path, SOUND)

    assert settings.database.url == "postgresql://127.0.0.1/tollhouse"
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8080)
    assert settings.server.body_bytes_max == 33_554_432
    assert settings.keys.customer_header == "x-api-key"


def test_the_file_is_the_one_that_the_environment_names(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.toml"
    path.write_text(SOUND + "\n[server]\nport = 4711\n", encoding="utf-8")

    assert load(environment={"TOLLHOUSE_CONFIG": str(path)}).server.port == 4711


def test_without_a_name_the_file_is_looked_for_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / DEFAULT_CONFIG_PATH).write_text(SOUND, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert load(environment={}).secrets.master == MASTER


def test_a_missing_file_is_named_together_with_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"absent\.toml: no such file.*`tollhouse init`"):
        load(tmp_path / "absent.toml", {})


@pytest.mark.parametrize(
    ("addition", "words"),
    [
        ("[server]\nprot = 1", "unknown field `prot` - at `$.server`. Did you mean `port`?"),
        ("[sever]\nport = 1", "unknown field `sever`. Did you mean `server`?"),
        ("[keys]\ncustomer_heder = 'a'", "Did you mean `customer_header`?"),
        ("[server]\nzzzzzzzzzzzz = 1", "unknown field `zzzzzzzzzzzz`"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(
    tmp_path: Path, addition: str, words: str
) -> None:
    assert words in refusal(tmp_path, f"{SOUND}\n{addition}\n")


def test_a_setting_that_was_renamed_is_refused_with_its_new_name(tmp_path: Path) -> None:
    in_file = refusal(tmp_path, f"{SOUND}\n[keys]\nbelieved_keys_max = 5\n")
    in_environment = refusal(tmp_path, SOUND, TOLLHOUSE_KEYS__BELIEVED_KEYS_MAX="5")

    assert in_file.endswith("Set keys.cache_size instead.")
    assert in_environment.startswith("TOLLHOUSE_KEYS__BELIEVED_KEYS_MAX: ")
    assert in_environment.endswith("Set keys.cache_size instead.")


def test_nothing_is_suggested_for_a_name_that_resembles_none(tmp_path: Path) -> None:
    assert "Did you mean" not in refusal(tmp_path, f"{SOUND}\n[server]\nzzzzzzzzzzzz = 1\n")


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("server", "port = -1"),
        ("server", "port = 65536"),
        ("server", "port = '8080'"),
        ("server", "port = true"),
        ("server", "port = 8080.0"),
        ("server", "workers = 0"),
        ("server", "workers = 257"),
        ("server", "drain_seconds = 0"),
        ("server", "drain_seconds = -1"),
        ("server", "drain_seconds = inf"),
        ("server", "drain_seconds = nan"),
        ("server", "drain_seconds = 86400.5"),
        ("server", "header_bytes_max = 1023"),
        ("server", "header_bytes_max = 1048577"),
        ("server", "body_bytes_max = 1023"),
        ("server", "body_bytes_max = 1073741825"),
        ("server", "host = 1"),
        ("keys", "cache_size = 0"),
        ("keys", "customer_header = ''"),
        ("keys", "customer_header = 'x-'"),
        ("keys", "customer_header = 'api-key'"),
        ("keys", "customer_header = 'authorization'"),
        ("keys", "customer_header = 'x-api key'"),
        ("keys", "customer_header = 'x-api-key:'"),
        ("keys", 'customer_header = "x-api-key\\n"'),
        ("keys", "customer_header = 'x-schlüssel'"),
        ("keys", f"customer_header = 'x-{'k' * 63}'"),
        ("keys", "cell = ''"),
        ("keys", "cell = 'EU1'"),
        ("keys", "cell = '1eu'"),
        ("keys", "cell = 'eu_1'"),
        ("keys", "cell = 'a23456789012345fx'"),
        ("idempotency", "record_days = 1"),
        ("idempotency", "record_days = 3651"),
        ("errors", "documentation_url = 1"),
    ],
)
def test_a_value_outside_of_its_bounds_is_refused_by_name(
    tmp_path: Path, section: str, line: str
) -> None:
    name = line.partition(" ")[0]

    assert f"$.{section}.{name}" in refusal(tmp_path, f"{SOUND}\n[{section}]\n{line}\n")


@pytest.mark.parametrize("setting", ["server.public_url", "errors.documentation_url"])
@pytest.mark.parametrize(
    "address",
    [
        "",
        "gateway.example",
        "ftp://gateway.example",
        "https://",
        "https://user:hunter2@gateway.example",
        "https://gateway.example?a=b",
        "https://gateway.example/#a",
        "https://gateway.example/a b",
        "https://gateway.example/<script>",
        "https://gateway.example:123456",
        "https://gateway.example\\n",
    ],
)
def test_an_address_for_callers_is_refused_by_name_unless_it_is_plain(
    tmp_path: Path, setting: str, address: str
) -> None:
    section, _, name = setting.partition(".")

    words = refusal(tmp_path, f'{SOUND}\n[{section}]\n{name} = "{address}"\n')

    assert f"{setting}: not of the form https://HOST" in words
    assert "hunter2" not in words


@pytest.mark.parametrize(
    ("lines", "documentation_url"),
    [
        ("", None),
        ("[server]\npublic_url = 'http://127.0.0.1:8080'", "http://127.0.0.1:8080/docs/errors"),
        ("[server]\npublic_url = 'https://[::1]:8443/llm/'", "https://[::1]:8443/llm/docs/errors"),
        ("[errors]\ndocumentation_url = 'https://a.example/e/'", "https://a.example/e"),
        (
            (
                "[server]\npublic_url = 'https://b.example'\n"
                "[errors]\ndocumentation_url = 'https://a.example/e'"
            ),
            "https://a.example/e",
        ),
    ],
)
def test_pages_of_errors_are_at_the_gateway_unless_another_place_has_them(
    tmp_path: Path, lines: str, documentation_url: str | None
) -> None:
    assert read(tmp_path, f"{SOUND}\n{lines}\n").documentation_url == documentation_url


@pytest.mark.parametrize("line", ["pool_size = 0", "pool_size = 501", "acquire_seconds = 0"])
def test_the_pool_has_bounds_as_well(tmp_path: Path, line: str) -> None:
    text = SOUND.replace("[secrets]", f"{line}\n[secrets]")

    assert f"$.database.{line.partition(' ')[0]}" in refusal(tmp_path, text)


def test_the_customers_header_is_any_of_those_that_nobody_else_defines(tmp_path: Path) -> None:
    settings = read(tmp_path, f"{SOUND}\n[keys]\ncustomer_header = 'X-Gateway-Key-2'\n")

    assert settings.keys.customer_header == "X-Gateway-Key-2"


def test_what_has_no_default_must_be_there(tmp_path: Path) -> None:
    assert "missing required field `database`" in refusal(tmp_path, SECRETS)
    assert "missing required field `secrets`" in refusal(tmp_path, DATABASE)


UNREADABLE = {
    "nothing at all": "",
    "a table that does not end": "[server",
    "a value in the place of a table": "server = 1",
    "no value": "[server]\nport = \n",
    "a name twice": "[server]\nport = 1\nport = 2",
    "a table twice": "[server]\n[server]\n",
    "NUL": "\0",
    "a byte order mark": "\ufeff" + SOUND,
    "endless nesting": "a = " + "[" * 100_000,
    "an endless number": "[server]\nport = " + "9" * 5_000,
    "a day that does not exist": "[server]\nport = 2026-02-31",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    assert "tollhouse.toml: " in refusal(tmp_path, text)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_bytes(SOUND.encode() + b"\n# \xff\n")

    with pytest.raises(InvalidSettings, match=r"tollhouse\.toml: "):
        load(path, {})


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=tmp_path.name):
        load(tmp_path, {})


@pytest.mark.guarantee("T45")
def test_a_huge_file_is_refused_for_its_size(tmp_path: Path) -> None:
    path = tmp_path / "tollhouse.toml"
    with path.open("wb") as file:
        file.write(SOUND.encode() + b"\n# ")
        file.truncate(HUGE_FILE_BYTES)

    with pytest.raises(InvalidSettings, match="too large"):
        load(path, {})
