"""What the sign-in of people needs of the other settings."""

from pathlib import Path

import pytest

from tests.settings.test_load import SOUND, read, refusal

SIGN_IN = """
[oidc]
issuer = "https://login.example"
client_id = "tollhouse"

[[oidc.grants]]
group = "admins"
organization = "0190a1b2-0000-7000-8000-000000000001"
permissions = "all"
"""


@pytest.mark.parametrize(
    "public_url",
    [None, "http://gateway.example", "https://gateway.example/llm", "http://127.0.0.1:8080/llm"],
)
def test_people_sign_in_only_at_the_root_of_a_host_over_tls(
    tmp_path: Path, public_url: str | None
) -> None:
    server = "" if public_url is None else f'\n[server]\npublic_url = "{public_url}"\n'

    words = refusal(tmp_path, SOUND + server + SIGN_IN)

    assert "oidc.issuer: set server.public_url too, to https://HOST without a path" in words


@pytest.mark.parametrize("public_url", ["https://gateway.example/", "http://localhost:8080"])
def test_people_sign_in_over_tls_or_on_this_machine(tmp_path: Path, public_url: str) -> None:
    settings = read(tmp_path, f'{SOUND}\n[server]\npublic_url = "{public_url}"\n{SIGN_IN}')

    assert settings.oidc.issuer == "https://login.example"
