"""The environment laid over the file."""

from pathlib import Path

import pytest

from tollhouse.settings import InvalidSettings, Settings, load

SOUND = """
[database]
url = "postgresql://127.0.0.1/tollhouse"

[secrets]
master = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"

[server]
port = 1
workers = 3
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "tollhouse.toml"
    file.write_text(SOUND, encoding="utf-8")
    return file


def overlaid(path: Path, **environment: str) -> Settings:
    return load(path, environment)


def test_a_variable_changes_one_value_and_leaves_its_neighbours(path: Path) -> None:
    settings = overlaid(path, TOLLHOUSE_SERVER__PORT="9000")

    assert (settings.server.port, settings.server.workers) == (9000, 3)


def test_a_variable_can_open_a_section_that_the_file_does_not_have(path: Path) -> None:
    assert overlaid(path, TOLLHOUSE_KEYS__CACHE_SIZE="5").keys.cache_size == 5


@pytest.mark.parametrize(
    ("text", "host"),
    [("0.0.0.0", "0.0.0.0"), ('"::1"', "::1"), ("gateway.example", "gateway.example"), ("", "")],
)
def test_a_value_is_read_as_toml_and_else_as_the_text_that_it_is(
    path: Path, text: str, host: str
) -> None:
    assert overlaid(path, TOLLHOUSE_SERVER__HOST=text).server.host == host


def test_a_database_url_needs_no_quotes(path: Path) -> None:
    url = "postgresql://user:p%40ss@db.example:5432/tollhouse?sslmode=require"

    assert overlaid(path, TOLLHOUSE_DATABASE__URL=url).database.url == url


@pytest.mark.parametrize(
    "name", ["TOLLHOUSE_CONFIG", "TOLLHOUSE_SERVER_PORT", "SERVER__PORT", "PATH"]
)
def test_other_variables_are_left_alone(path: Path, name: str) -> None:
    assert load(path, {name: "9000"}) == load(path, {})


REFUSED = {
    "above the bound": ("TOLLHOUSE_SERVER__PORT", "65536"),
    "of another type": ("TOLLHOUSE_SERVER__PORT", "many"),
    "empty": ("TOLLHOUSE_SERVER__PORT", ""),
    "an endless number": ("TOLLHOUSE_SERVER__PORT", "9" * 5_000),
    "endless nesting": ("TOLLHOUSE_SERVER__PORT", "[" * 100_000),
    "below a value": ("TOLLHOUSE_SERVER__PORT__X", "1"),
    "without a name": ("TOLLHOUSE_SERVER__", "1"),
    "without a section": ("TOLLHOUSE___PORT", "1"),
    "of an unknown name": ("TOLLHOUSE_SERVER__PROT", "1"),
    "of an unknown section": ("TOLLHOUSE_SEVER__PORT", "1"),
    "a weak secret": ("TOLLHOUSE_SECRETS__MASTER", "short"),
}


@pytest.mark.parametrize(("name", "text"), REFUSED.values(), ids=REFUSED)
def test_a_variable_is_held_to_the_same_rules_as_the_file(path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidSettings):
        load(path, {name: text})


@pytest.mark.parametrize(
    "case", ["above the bound", "of another type", "of an unknown name", "of an unknown section"]
)
def test_the_variable_is_blamed_and_not_the_file(path: Path, case: str) -> None:
    name, text = REFUSED[case]

    with pytest.raises(InvalidSettings, match=f"^{name}: "):
        load(path, {"TOLLHOUSE_SERVER__WORKERS": "2", name: text})


def test_the_file_is_blamed_for_what_it_says_itself(tmp_path: Path) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_text(SOUND.replace("[server]", "[server]\nprot = 1", 1), encoding="utf-8")

    with pytest.raises(InvalidSettings, match=f"^{path}: "):
        load(path, {"TOLLHOUSE_SERVER__WORKERS": "2"})


def test_a_variable_cannot_mend_a_section_that_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_text("server = 1\n" + SOUND.partition("[server]")[0], encoding="utf-8")

    with pytest.raises(InvalidSettings, match=r"\$\.server"):
        load(path, {"TOLLHOUSE_SERVER__PORT": "9000"})
