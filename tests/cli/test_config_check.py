"""`tollhouse config check`: a configuration is checked as CI does it, without what it names."""

from typing import Any

import pytest

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts
from tests.support import databases
from tollhouse.cli.deployment.configuration_file import write_draft
from tollhouse.settings import load

MASTER = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"
OTHER_SECRET = "Qp6oIu3yTr9eWz1xCv8bNm4aSd7fGh0j"
PASSWORD = "hunter2"
SECRETS = f"""
[database]
url = "postgresql://user:{PASSWORD}@db.example/tollhouse"
[secrets]
master = "{MASTER}"
"""
BACKEND = """
[backends.engine]
replicas = ["http://engine.example/v1"]
api_key_variable = "ENGINE_KEY"
"""
MODEL = """
[models."example/model-a"]
backend = "engine"
context_length = 8192
max_output_length = 4096
pricing = { prompt = "0.0000005", completion = "0.0000015" }
"""
SOUND = SECRETS + BACKEND + MODEL
NO_FILE = "the file cannot be read: No such file or directory"


@pytest.fixture
def reviewer(newcomer: Operator) -> Operator:
    """Somebody who has a sound configuration with its secrets, and no deployment."""
    newcomer.secrets.extend([MASTER, OTHER_SECRET, PASSWORD, "sk-1"])
    newcomer.environment["ENGINE_KEY"] = "sk-1"
    write(newcomer, SOUND)
    return newcomer


def write(operator: Operator, text: str, name: str = "tollhouse.toml") -> None:
    (operator.directory / name).write_text(text, encoding="utf-8")


def checked(operator: Operator, *arguments: str) -> dict[str, Any]:
    return operator.json("config", "check", "tollhouse.toml", *arguments)


def refused(operator: Operator, *arguments: str, **environment: str) -> str:
    command = ("config", "check", "tollhouse.toml", *arguments)
    return operator.run(*command, exit_code=1, **environment).stderr


def changes(operator: Operator, before: str) -> dict[str, tuple[str, Any, Any]]:
    """What the configuration changes of another one, by path."""
    write(operator, before, "other.toml")
    found = checked(operator, "--against", "other.toml")["differences"]
    return {each["path"]: (each["change"], each["before"], each["after"]) for each in found}


def test_a_sound_configuration_is_valid_without_what_it_names(reviewer: Operator) -> None:
    assert checked(reviewer) == {
        "object": "configuration.check",
        "models": 1,
        "backends": 1,
        "warnings": [],
        "differences": None,
    }


def test_what_init_writes_is_valid_and_gives_no_warning(newcomer: Operator) -> None:
    draft = write_draft(newcomer.settings_path, database_url=databases.MAINTENANCE_URL)
    assert load(draft).compatibility.accepts_own_answers
    draft.rename(newcomer.settings_path)

    assert checked(newcomer)["warnings"] == []


def test_a_fault_of_a_setting_is_told(reviewer: Operator) -> None:
    write(reviewer, f"{SOUND}[server]\nworker = 3\n")

    assert refused(reviewer).startswith(
        "Error: tollhouse.toml: Object contains unknown field `worker`"
    )


def test_a_fault_of_the_catalog_is_told(reviewer: Operator) -> None:
    write(reviewer, SECRETS + MODEL)

    assert refused(reviewer) == (
        'Error: models."example/model-a".backend: there is no such backend\n'
    )


def test_a_wrong_variable_is_named_and_not_the_file(reviewer: Operator) -> None:
    told = refused(reviewer, TOLLHOUSE_SERVER__WORKER="3")

    assert told.startswith("Error: TOLLHOUSE_SERVER__WORKER: ")
    assert "tollhouse.toml" not in told


def test_a_failure_is_one_document_for_programs(reviewer: Operator) -> None:
    write(reviewer, SECRETS + MODEL)

    failed = reviewer.run("config", "check", "tollhouse.toml", "--json", exit_code=1)

    assert failed.error["code"] == "invalid_catalog"


def test_a_file_that_is_not_there_is_a_usage_error(newcomer: Operator) -> None:
    told = newcomer.run("config", "check", "absent.toml", exit_code=2).stderr

    assert "'absent.toml' does not exist" in told


def test_secrets_that_ci_does_not_have_are_warnings(newcomer: Operator) -> None:
    write(newcomer, BACKEND + MODEL)

    found = newcomer.run("config", "check", "tollhouse.toml")

    assert found.stdout == "tollhouse.toml is valid (models: 1, backends: 1).\n"
    assert found.stderr.splitlines() == [
        "Warning: database.url: it is not set",
        "Warning: secrets.master: it is not set",
        'Warning: backends."engine".api_key_variable: the environment has no such variable',
    ]


def test_files_of_secrets_that_ci_does_not_have_are_warnings(newcomer: Operator) -> None:
    write(
        newcomer,
        """
        [database]
        url_file = "/none/url"
        replica_url_file = "/none/replica"
        [redis]
        url_file = "/none/redis"
        [alerts]
        smtp_password_file = "/none/password"
        [oidc]
        client_secret_file = "/none/client"
        [secrets]
        master_file = "/none/master"
        previous_masters_file = "/none/previous"
        [backends.engine]
        replicas = ["http://engine.example/v1"]
        api_key_file = "/none/key"
        """,
    )

    assert sorted(checked(newcomer)["warnings"]) == [
        f"{place}: {NO_FILE}"
        for place in (
            "alerts.smtp_password_file",
            'backends."engine".api_key_file',
            "database.replica_url_file",
            "database.url_file",
            "oidc.client_secret_file",
            "redis.url_file",
            "secrets.master_file",
            "secrets.previous_masters_file",
        )
    ]


def test_all_else_is_checked_without_the_secrets(newcomer: Operator) -> None:
    write(newcomer, MODEL)

    assert "there is no such backend" in refused(newcomer)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (SOUND.replace(MASTER, "short"), "secrets.master: too weak"),
        (SOUND.replace("postgresql://", "postgres//"), "database.url: not of the form"),
    ],
)
def test_a_secret_that_is_there_must_be_valid(reviewer: Operator, wrong: str, told: str) -> None:
    write(reviewer, wrong)

    assert told in refused(reviewer)


def test_a_credential_that_is_there_must_be_valid(reviewer: Operator) -> None:
    assert "the credential is empty" in refused(reviewer, ENGINE_KEY=" ")


def test_a_price_in_another_unit_is_a_warning(reviewer: Operator) -> None:
    write(reviewer, SOUND.replace("0.0000005", "0.5"))

    (warning,) = checked(reviewer)["warnings"]

    assert warning.startswith('models."example/model-a".pricing.prompt: 0.5 is 500,000 times more')


def test_settings_models_and_backends_are_compared_by_name(reviewer: Operator) -> None:
    before = f"""{SECRETS}{MODEL.replace("0.0000015", "0.000001").replace("engine", "old")}
        [backends.old]
        replicas = ["http://engine.example/v1"]
        [models.gone]
        backend = "old"
        context_length = 8192
        max_output_length = 4096
        pricing = {{ prompt = "0.0000005", completion = "0.0000015" }}
        [server]
        workers = 4
    """

    assert changes(reviewer, before) == {
        'backends."engine"': ("added", None, None),
        'backends."old"': ("removed", None, None),
        'models."example/model-a".backend': ("changed", "old", "engine"),
        'models."example/model-a".pricing.completion': ("changed", "0.000001", "0.0000015"),
        'models."gone"': ("removed", None, None),
        "server.workers": ("changed", 4, 2),
    }


def test_a_default_that_is_written_is_no_difference(reviewer: Operator) -> None:
    defaults = 'owned_by = "tollhouse"\n[server]\nworkers = 2\n'

    assert changes(reviewer, f"{SOUND}{defaults}") == {}


def test_a_setting_that_had_no_value_is_added(reviewer: Operator) -> None:
    judge = '[judge]\nbackend = "engine"\nmodel = "a"\ncontext_length = 8192\n'
    write(reviewer, f'{SOUND}{judge}[server]\npublic_url = "https://gateway.example"\n')

    found = changes(reviewer, SOUND)

    assert found["server.public_url"] == ("added", None, "https://gateway.example")
    assert found["judge.model"] == ("added", None, "a")


def test_a_changed_secret_is_told_without_a_value(reviewer: Operator) -> None:
    before = SOUND.replace(MASTER, OTHER_SECRET).replace(PASSWORD, "letmein")
    before = before.replace("ENGINE_KEY", "OTHER_KEY").replace(
        "master = ", 'previous_masters_file = "previous"\nmaster = '
    )
    reviewer.secrets.extend(["letmein", "OTHER_KEY"])

    assert changes(reviewer, before) == {
        'backends."engine".api_key_variable': ("changed", None, None),
        "database.url": ("changed", None, None),
        "secrets.master": ("changed", None, None),
        "secrets.previous_masters_file": ("removed", None, None),
    }


def test_a_table_shows_the_difference_to_people(reviewer: Operator) -> None:
    write(reviewer, SOUND.replace("0.0000005", "0.0000006"), "other.toml")

    shown = reviewer.run("config", "check", "tollhouse.toml", "--against", "other.toml").stdout

    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["path", "change", "before", "after"],
        ['models."example/model-a".pricing.prompt', "changed", "0.0000006", "0.0000005"],
    ]


def test_an_invalid_other_file_is_named(reviewer: Operator) -> None:
    write(reviewer, SECRETS + MODEL, "other.toml")

    told = refused(reviewer, "--against", "other.toml")

    assert told.startswith("Error: The file of --against, other.toml, is invalid: models.")


def test_the_command_of_the_guide_works(reviewer: Operator) -> None:
    write(reviewer, SOUND, "deployed.toml")
    script, *_ = scripts(read("docs/guides/running.md"))

    shown = reviewer.bash(script).stdout

    assert shown.endswith("Both configurations say the same.\n")
