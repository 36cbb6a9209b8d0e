"""`tollhouse key peppers` and `retire-pepper`; their tables are in the guide to keys."""

from tests.cli.commands import Operator, call

FACTS = {"object": "pepper", "workers": 0, "workers_live": 0, "configured": True}


def add_pepper(operator: Operator, version: int, pepper: str) -> None:
    """The section of the peppers is the last one that `init` writes."""
    with operator.settings_path.open("a") as file:
        file.write(f'{version} = "{pepper}"\n')
    operator.secrets.append(pepper)


def test_a_new_version_is_used_and_the_old_one_retired(patient: Operator) -> None:
    config = ("--config", str(patient.settings_path))
    call(*config, "org", "create", "Example Ltd")
    call(*config, "admin-key", "create", "old")
    add_pepper(patient, 2, "the second pepper, long and mixed 0123")
    call(*config, "admin-key", "create", "new")

    known = patient.json("key", "peppers")["data"]
    retired = patient.json("key", "retire-pepper", "1", "--yes")

    assert known == [
        FACTS | {"version": 1, "secrets": 1, "mints": False},
        FACTS | {"version": 2, "secrets": 1, "mints": True},
    ]
    assert retired == {"object": "pepper.retired", "version": 1, "secrets_ended": 1}


def test_what_is_unknown_or_the_only_one_cannot_be_retired(patient: Operator) -> None:
    config = ("--config", str(patient.settings_path))
    call(*config, "org", "create", "Example Ltd")
    call(*config, "admin-key", "create", "the only one")

    assert patient.failure_code("key", "retire-pepper", "7", "--yes") == "pepper_not_found"
    assert patient.failure_code("key", "retire-pepper", "1", "--yes") == "pepper_needed"
