"""The demonstration judge is refused outside a trial."""

from pathlib import Path

import pytest

from tollhouse.settings import InvalidSettings, Settings, load

TEXT = """
[database]
url = "postgresql://127.0.0.1/tollhouse"
[secrets]
master = "mvX0hNdkLq3zB7cRtY5wPaJ8sEfU2gKi"
[ledger]
is_sandbox = %s
[backends.test]
replicas = ["http://127.0.0.1:8000/v1"]
[judge]
backend = "test"
model = "%s"
context_length = 4096
"""


def read(folder: Path, is_sandbox: str, model: str) -> Settings:
    path = folder / "tollhouse.toml"
    path.write_text(TEXT % (is_sandbox, model), encoding="utf-8")
    return load(path, {})


def test_a_trial_may_have_it(tmp_path: Path) -> None:
    assert read(tmp_path, "true", "demonstration-judge").judge is not None


def test_a_deployment_may_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"^judge\.model: the demonstration judge"):
        read(tmp_path, "false", "demonstration-judge")


def test_a_deployment_may_have_any_other(tmp_path: Path) -> None:
    assert read(tmp_path, "false", "small-instruct").judge is not None
