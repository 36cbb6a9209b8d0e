"""`tollhouse secrets rotate` and `status`; their steps are in the guide to keys."""

import asyncio
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.cli.commands import Operator, call, execute, remember_secrets
from tollhouse.cli.keys.secrets_file import (
    RotationNotFinished,
    SecretsNotEditable,
    replace_master,
)
from tollhouse.settings import load
from tollhouse.storage.master_secrets import MasterSecrets
from tollhouse.storage.sealing import Sealer

NEW = "Zx9cVb2nMl5kJh8gFd1sAqW4eRt7yUiO"
PRESENT = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"
SEALED_VALUE = """
    INSERT INTO idempotency_records
           (organization_id, idempotency_key, fingerprint, resource_id, creator_id, created_at,
            sealed, sealed_day)
    VALUES (gen_random_uuid(), 'creation-1', '', gen_random_uuid(), gen_random_uuid(),
            now(), 'sealed', (now() AT TIME ZONE 'UTC')::date)
"""
UNAWARE_WORKER = """
    INSERT INTO instances (id, started_at, heartbeat_at, newest_revision, pepper_versions)
    VALUES (gen_random_uuid(), now(), now() + interval '1 hour', '9999', '{1}')
"""


def test_rotating_changes_two_lines_of_the_file_and_shows_no_secret(patient: Operator) -> None:
    patient.settings_path.chmod(0o640)
    before = patient.settings_path.read_text(encoding="utf-8").splitlines()
    present = load(patient.settings_path, {}).secrets

    rotated = patient.json("secrets", "rotate")

    after = patient.settings_path.read_text(encoding="utf-8").splitlines()
    written = load(patient.settings_path, {}).secrets
    assert written.previous_masters == [present.master]
    assert written.peppers == present.peppers
    assert [line for line in before if line not in after] == [f'master = "{present.master}"']
    assert len(after) == len(before) + 1
    assert patient.settings_path.stat().st_mode & 0o777 == 0o640
    assert list(patient.directory.iterdir()) == [patient.settings_path]
    ids = MasterSecrets(written.master_bytes()).ids
    assert rotated == {
        "object": "master_secret.rotated",
        "config": "tollhouse.toml",
        "id": ids[0],
        "previous_ids": ids[1:],
    }


def test_the_steps_are_told_and_the_new_secret_is_not(patient: Operator) -> None:
    told = patient.run("secrets", "rotate").stdout
    remember_secrets(patient)
    patient.refuse_secrets(told)

    assert "SIGHUP" in told
    assert "tollhouse secrets status" in told


def test_a_fourth_rotation_needs_the_first_ones_to_be_finished(patient: Operator) -> None:
    config = ("--config", str(patient.settings_path))
    for _ in range(3):
        call(*config, "secrets", "rotate")
    before = patient.settings_path.read_bytes()

    assert patient.failure_code("secrets", "rotate") == "too_many_previous_masters"
    assert patient.settings_path.read_bytes() == before


@pytest.mark.parametrize("name", ["MASTER", "PREVIOUS_MASTERS", "master"])
def test_a_secret_of_the_environment_is_not_rotated_in_the_file(
    patient: Operator, name: str
) -> None:
    """Not even where both say the same: after a rotation they would not."""
    before = patient.settings_path.read_bytes()
    master = load(patient.settings_path, {}).secrets.master
    variable = f"TOLLHOUSE_SECRETS__{name}"
    patient.environment[variable] = "[]" if name == "PREVIOUS_MASTERS" else master

    failed = patient.run("secrets", "rotate", "--json", exit_code=1)

    assert failed.error["code"] == "secrets_set_by_environment"
    assert variable in failed.error["message"]
    assert patient.settings_path.read_bytes() == before
    assert list(patient.directory.iterdir()) == [patient.settings_path]


def test_the_file_of_an_interrupted_rotation_is_named_and_left(patient: Operator) -> None:
    before = patient.settings_path.read_bytes()
    left = patient.directory / "tollhouse.toml.rotated"
    left.write_text("half")

    failed = patient.run("secrets", "rotate", "--json", exit_code=1)

    assert failed.error["code"] == "rotation_not_finished"
    assert f"Remove {left.resolve()}" in failed.error["message"]
    assert patient.settings_path.read_bytes() == before
    assert left.read_text() == "half"


def test_rotations_at_once_lose_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_text(
        f'[secrets]\nmaster = "{PRESENT}"\n[secrets.peppers]\n1 = "{NEW[::-1]}"\n'
        '[database]\nurl = "postgresql://127.0.0.1/tollhouse"\n'
    )
    masters = [f"{number}{NEW}" for number in range(3)]

    with ThreadPoolExecutor(len(masters)) as pool:
        written = list(pool.map(partial(_rotated, path), masters))

    found = load(path, {}).secrets
    kept = {found.master, *found.previous_masters}
    assert any(written)
    assert kept == {PRESENT, *(m for m, ok in zip(masters, written, strict=True) if ok)}


def _rotated(path: Path, master: str) -> bool:
    try:
        replace_master(path, master)
    except RotationNotFinished:
        return False
    return True


UNEDITABLE = {
    "an inline table": f'secrets = {{ master = "{PRESENT}", peppers = {{ 1 = "{NEW[::-1]}" }} }}\n',
    "dotted names": f'secrets.master = "{PRESENT}"\nsecrets.peppers.1 = "{NEW[::-1]}"\n',
    "several lines": f'[secrets]\nmaster = """\\\n{PRESENT}"""\n'
    f'[secrets.peppers]\n1 = "{NEW[::-1]}"\n',
    "a list over lines": f'[secrets]\nmaster = "{PRESENT}"\nprevious_masters = [\n]\n'
    f'[secrets.peppers]\n1 = "{NEW[::-1]}"\n',
}


@pytest.mark.parametrize("text", UNEDITABLE.values(), ids=UNEDITABLE)
def test_a_file_of_another_form_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_text(f'{text}[database]\nurl = "postgresql://127.0.0.1/tollhouse"\n')
    before = path.read_bytes()

    with pytest.raises(SecretsNotEditable):
        replace_master(path, NEW)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_settings_of_the_same_name_elsewhere_and_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_text(
        '[backends.master]\nmaster = "not this"\n'
        f'[secrets] # keep\n  master = "{PRESENT}" # since spring\n'
        f'previous_masters = ["{PRESENT[::-1]}"]\n'
        f'[secrets.peppers]\n1 = "{NEW[::-1]}"\n'
        '[database]\nurl = "postgresql://127.0.0.1/tollhouse"\n'
    )
    before = tomllib.loads(path.read_text())

    replace_master(path, NEW)

    masters = {"master": NEW, "previous_masters": [PRESENT, PRESENT[::-1]]}
    assert tomllib.loads(path.read_text()) == before | {"secrets": before["secrets"] | masters}
    assert "[secrets] # keep\n" in path.read_text()
    assert f'  master = "{NEW}" # since spring\n' in path.read_text()


@pytest.mark.parametrize("previous", ["", f'previous_masters = ["{PRESENT[::-1]}"]\r\n'])
def test_line_ends_stay_as_they_are(tmp_path: Path, previous: str) -> None:
    path = tmp_path / "tollhouse.toml"
    path.write_bytes(
        f'[secrets]\r\n{previous}master = "{PRESENT}"\r\n[secrets.peppers]\r\n'
        f'1 = "{NEW[::-1]}"\r\n[database]\r\nurl = "postgresql://127.0.0.1/x"\r\n'.encode()
    )

    replace_master(path, NEW)

    written = path.read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n") == 7


def test_the_status_tells_what_still_needs_the_previous_secret(
    patient: Operator, database_url: str
) -> None:
    patient.do(
        lambda operator: Sealer(operator.database, operator.masters).seal(
            b"a value", bound_to=b"a creation", now=operator.clock.now()
        )
    )
    asyncio.run(execute(database_url, SEALED_VALUE + ";" + UNAWARE_WORKER))
    patient.json("secrets", "rotate")

    current, previous = patient.json("secrets", "status")["data"]

    facts = {"object": "master_secret", "workers": 0, "workers_live": 1}
    assert current == facts | {
        "id": current["id"],
        "role": "current",
        "writes": True,
        "data_keys": 0,
        "sealed_values": 0,
        "last_expires_at": None,
    }
    assert previous == facts | {
        "id": previous["id"],
        "role": "previous",
        "writes": False,
        "data_keys": 1,
        "sealed_values": 1,
        "last_expires_at": previous["last_expires_at"],
    }
    assert previous["last_expires_at"] > 0

    patient.do(lambda operator: Sealer(operator.database, operator.masters).rewrap())
    assert "Nothing needs" not in patient.run("secrets", "status").stdout
    asyncio.run(execute(database_url, "DELETE FROM instances"))
    told = patient.run("secrets", "status").stdout
    assert f"Nothing needs {previous['id']} any more." in told
    report = patient.json("doctor")
    (finding,) = [one for one in report["data"] if one["check"] == "master secret"]
    assert finding["outcome"] == "warning"
    assert previous["id"] in finding["found"]


def test_what_live_workers_use_and_the_file_lacks_is_a_failure_and_keeps_serve_from_starting(
    patient: Operator, database_url: str
) -> None:
    worker = UNAWARE_WORKER.replace("pepper_versions)", "pepper_versions, master_ids)").replace(
        "'{1}')", "'{1}', '{0123456789abcdef}')"
    )
    asyncio.run(execute(database_url, worker))

    report = patient.json("doctor", exit_code=1)
    refused = patient.run("serve", exit_code=1)
    rows = patient.json("secrets", "status")["data"]

    (finding,) = [one for one in report["data"] if one["check"] == "master secret"]
    assert finding["outcome"] == "failure"
    assert "0123456789abcdef" in finding["found"]
    assert "secrets.previous_masters" in refused.stderr
    assert [row["role"] for row in rows] == ["current", "not configured"]
