"""Credentials of backends are named in the file and kept elsewhere."""

from pathlib import Path

import pytest

from tollhouse.settings import InvalidSettings, Settings, load

SOUND = """
[database]
url = "postgresql://127.0.0.1/tollhouse"

[secrets]
master = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"

[backends.engine]
replicas = ["http://127.0.0.1:8000/v1"]
"""
CREDENTIAL = "sk-hunter2"


def read(folder: Path, lines: str, **environment: str) -> Settings:
    path = folder / "tollhouse.toml"
    path.write_text(SOUND + lines, encoding="utf-8")
    return load(path, environment)


def refusal(folder: Path, lines: str, **environment: str) -> str:
    with pytest.raises(InvalidSettings) as refused:
        read(folder, lines, **environment)
    assert refused.value.__cause__ is None
    assert "hunter2" not in str(refused.value)
    return str(refused.value)


def file_of(folder: Path, content: str | bytes) -> str:
    path = folder / "credential"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f'api_key_file = "{path}"'


def test_a_backend_without_a_credential_has_none(tmp_path: Path) -> None:
    assert read(tmp_path, "").backends["engine"] == {"replicas": ["http://127.0.0.1:8000/v1"]}


@pytest.mark.parametrize("held", [CREDENTIAL, f"{CREDENTIAL}\n", f"  {CREDENTIAL}\r\n\t"])
def test_a_credential_is_taken_from_a_variable_or_a_file_without_its_blanks(
    tmp_path: Path, held: str
) -> None:
    by_variable = read(tmp_path, 'api_key_variable = "ENGINE_KEY"', ENGINE_KEY=held)
    by_file = read(tmp_path, file_of(tmp_path, held))

    for settings in (by_variable, by_file):
        assert settings.backends["engine"] == {
            "replicas": ["http://127.0.0.1:8000/v1"],
            "api_key": CREDENTIAL,
        }


def test_a_backend_of_the_environment_has_its_credential_there_too(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "",
        TOLLHOUSE_BACKENDS__OTHER='{ replicas = ["http://x"], api_key_variable = "OTHER_KEY" }',
        OTHER_KEY=CREDENTIAL,
    )

    assert settings.backends["other"]["api_key"] == CREDENTIAL


@pytest.mark.parametrize(
    "lines",
    [
        f'api_key = "{CREDENTIAL}"',
        "api_key = 1",
        f'api_key = "{CREDENTIAL}"\napi_key_variable = "ENGINE_KEY"',
        'api_key_file = "/dev/null"\napi_key_variable = "ENGINE_KEY"',
    ],
)
def test_a_credential_in_the_file_is_refused_with_what_to_do(tmp_path: Path, lines: str) -> None:
    said = refusal(tmp_path, lines, ENGINE_KEY=CREDENTIAL)

    assert said.startswith('backends."engine": a credential must not be in this file.')
    assert 'api_key_variable = "NAME_OF_VARIABLE" or api_key_file = "/path/of/file"' in said


def test_a_variable_that_is_not_there_is_named_by_its_place_only(tmp_path: Path) -> None:
    """Whoever writes the credential in the place of the name must not read it in a log."""
    said = refusal(tmp_path, f'api_key_variable = "{CREDENTIAL}"')

    assert said == ('backends."engine".api_key_variable: the environment has no such variable')


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    absent = refusal(tmp_path, f'api_key_file = "{tmp_path}/{CREDENTIAL}"')
    folder = refusal(tmp_path, f'api_key_file = "{tmp_path}"')

    assert absent.endswith(".api_key_file: the file cannot be read: No such file or directory")
    assert folder.endswith(".api_key_file: the file cannot be read: Is a directory")


@pytest.mark.parametrize("held", ["", " \n"])
def test_an_empty_credential_is_refused(tmp_path: Path, held: str) -> None:
    by_variable = refusal(tmp_path, 'api_key_variable = "ENGINE_KEY"', ENGINE_KEY=held)
    by_file = refusal(tmp_path, file_of(tmp_path, held))

    assert by_variable.endswith("the credential is empty")
    assert by_file.endswith("the credential is empty")


UNUSABLE = {
    "two lines": f"{CREDENTIAL}\nX-Other: 1",
    "two words": f"{CREDENTIAL} {CREDENTIAL}",
    "a letter of another script": f"{CREDENTIAL}é",
    "too much": f"{CREDENTIAL}{'x' * 16_384}",
}


@pytest.mark.parametrize("held", UNUSABLE.values(), ids=UNUSABLE)
def test_what_could_not_stand_in_a_header_is_refused(tmp_path: Path, held: str) -> None:
    by_variable = refusal(tmp_path, 'api_key_variable = "ENGINE_KEY"', ENGINE_KEY=held)
    by_file = refusal(tmp_path, file_of(tmp_path, held))

    words = "not one word of at most 16384 visible ASCII characters"
    assert words in by_variable
    assert words in by_file


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, file_of(tmp_path, CREDENTIAL.encode() + b"\xff"))

    assert said.endswith("the file cannot be read as text")


@pytest.mark.parametrize("line", ["api_key_variable = 1", "api_key_file = ['x']"])
def test_a_place_is_a_text(tmp_path: Path, line: str) -> None:
    assert refusal(tmp_path, line).startswith('backends."engine".api_key_')


def test_settings_print_none_of_their_values(tmp_path: Path) -> None:
    settings = read(tmp_path, 'api_key_variable = "ENGINE_KEY"', ENGINE_KEY=CREDENTIAL)

    for printed in (repr(settings), str(settings), repr(settings.secrets), f"{settings.database}"):
        assert printed.endswith("Settings(...)")
