"""Secrets that the configuration names by their files, and settings without a file."""

from pathlib import Path

import pytest

from tollhouse.settings import InvalidSettings, Settings, load, overriding_variable

URL = "postgresql://user:p%40ss@db.example/tollhouse"
MASTER = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"
PREVIOUS = ["hT4mXc9vBz2nLq7wEr5yUi1oPa8sDf3g", "Gj6kLz3xCv9bNm1qWe4rTy7uIo2pAs5d"]
NEWER = "Qp6oIu3yTr9eWz1xCv8bNm4aSd7fGh0j"
FILES = {
    "url": URL,
    "master": MASTER,
    "previous": "\n".join(PREVIOUS),
    "newer": NEWER,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one file for each secret, which is the present directory."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(f"{content}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(folder: Path, text: str, **environment: str) -> Settings:
    path = folder / "some.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, environment)


def in_environment(folder: Path) -> dict[str, str]:
    return {
        "TOLLHOUSE_DATABASE__URL_FILE": f"{folder}/url",
        "TOLLHOUSE_REDIS__URL_FILE": f"{folder}/redis",
        "TOLLHOUSE_SECRETS__MASTER_FILE": f"{folder}/master",
        "TOLLHOUSE_SECRETS__PREVIOUS_MASTERS_FILE": f"{folder}/previous",
    }


def test_every_secret_can_come_from_a_file(folder: Path) -> None:
    (folder / "redis").write_text("redis://:word@cache.example:6379/0\n", encoding="utf-8")

    settings = read(
        folder,
        f"""
        [database]
        url_file = "{folder}/url"
        [redis]
        url_file = "{folder}/redis"
        [secrets]
        master_file = "{folder}/master"
        previous_masters_file = "{folder}/previous"
        """,
    )

    assert settings.database.url == URL
    assert settings.redis.url == "redis://:word@cache.example:6379/0"
    assert (settings.secrets.master, settings.secrets.previous_masters) == (MASTER, PREVIOUS)


def test_the_environment_can_have_everything_without_a_file(folder: Path) -> None:
    (folder / "redis").write_text("redis://cache.example:6379/0", encoding="utf-8")

    settings = load(environment=in_environment(folder))

    assert settings.database.url == URL
    assert (settings.secrets.master, settings.secrets.previous_masters) == (MASTER, PREVIOUS)


def test_what_is_missing_without_a_file_is_named(folder: Path) -> None:
    environment = in_environment(folder)
    del environment["TOLLHOUSE_DATABASE__URL_FILE"], environment["TOLLHOUSE_REDIS__URL_FILE"]

    with pytest.raises(InvalidSettings, match=r"^the environment, without tollhouse\.toml: .*data"):
        load(environment=environment)


@pytest.mark.parametrize("environment", [{}, {"TOLLHOUSE_CONFIG": "tollhouse.toml"}])
def test_without_file_and_settings_the_file_is_missing(
    folder: Path, environment: dict[str, str]
) -> None:
    with pytest.raises(InvalidSettings, match=r"^tollhouse\.toml: no such file"):
        load(environment=environment)


def test_a_named_file_must_exist(folder: Path) -> None:
    with pytest.raises(InvalidSettings, match="no such file"):
        load(environment={**in_environment(folder), "TOLLHOUSE_CONFIG": "other.toml"})


SECTIONS = f"""
[database]
url = "{URL}"
[secrets]
master = "{MASTER}"
"""


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TOLLHOUSE_SECRETS__MASTER", NEWER),
        ("TOLLHOUSE_SECRETS__MASTER_FILE", "newer"),
    ],
)
def test_a_variable_replaces_either_form_in_the_file(
    folder: Path, variable: str, value: str
) -> None:
    in_files = SECTIONS.replace(f'master = "{MASTER}"', 'master_file = "master"')

    for text in (SECTIONS, in_files):
        assert read(folder, text, **{variable: value}).secrets.master == NEWER


@pytest.mark.parametrize(
    "variables",
    [
        {"TOLLHOUSE_SECRETS__MASTER": MASTER, "TOLLHOUSE_SECRETS__MASTER_FILE": "master"},
    ],
)
def test_two_variables_for_one_secret_are_refused(folder: Path, variables: dict[str, str]) -> None:
    with pytest.raises(InvalidSettings, match="not both"):
        read(folder, SECTIONS, **variables)


REFUSED = {
    "no such file": "master_file = 'missing'",
    "both forms": f"master_file = 'master'\nmaster = '{MASTER}'",
    "an empty file": "master_file = 'empty'",
    "two words": "master_file = 'previous'",
    "no path": "master_file = 1",
    "a field that is no secret": "masters_file = 'master'",
}


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED)
def test_a_file_of_no_use_is_refused_without_its_content(folder: Path, lines: str) -> None:
    (folder / "empty").touch()
    text = SECTIONS.replace(f'master = "{MASTER}"', lines)

    with pytest.raises(InvalidSettings) as refused:
        read(folder, text)

    assert "master" in str(refused.value)
    assert not any(secret in str(refused.value) for secret in (MASTER, *PREVIOUS))


@pytest.mark.parametrize("suffix", ["", "_FILE"])
def test_both_forms_override_a_setting(suffix: str) -> None:
    variable = f"TOLLHOUSE_SECRETS__MASTER{suffix}"

    assert overriding_variable("secrets", ("master",), {variable: "x"}) == variable
