"""Files of certificate authorities are read with the configuration, or refused by their setting."""

from pathlib import Path

import pytest

from tests.settings.test_credentials import read, refusal
from tests.support.certificates import Certificates, make_certificates

UNUSABLE = "the file is not one of certificates in PEM form"
URL = "postgresql://127.0.0.1/tollhouse?sslmode=verify-full&sslrootcert="


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def ca_file(path: Path) -> str:
    return f'ca_file = "{path}"'


def test_a_backend_has_the_certificates_of_its_file(
    tmp_path: Path, certificates: Certificates
) -> None:
    certificate = certificates.authority.read_text("ascii")
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(f"# Főtanúsítvány\n{certificate}\n{certificate}", "utf-8")

    alone = read(tmp_path, ca_file(certificates.authority)).backends["engine"]
    many = read(tmp_path, ca_file(bundle)).backends["engine"]

    assert alone == {"replicas": ["http://127.0.0.1:8000/v1"], "ca_certificates": certificate}
    assert many["ca_certificates"].count("BEGIN CERTIFICATE") == 2


def test_what_holds_no_certificate_is_refused(tmp_path: Path, certificates: Certificates) -> None:
    """An empty file must not stand for all authorities of the system."""
    empty, torn, large = (tmp_path / name for name in ("empty", "torn", "large"))
    empty.write_bytes(b"")
    torn.write_bytes(certificates.authority.read_bytes()[:-60])
    large.write_bytes(b"#" * 1_048_577)
    place = 'backends."engine".ca_file: '

    for path in (empty, torn, certificates.key):
        assert refusal(tmp_path, ca_file(path)) == place + UNUSABLE
    assert refusal(tmp_path, ca_file(large)) == f"{place}the file has more than 1048576 bytes"
    assert refusal(tmp_path, ca_file(tmp_path / "absent")) == (
        f"{place}the file cannot be read: No such file or directory"
    )


def test_certificates_are_named_by_a_file_alone(tmp_path: Path) -> None:
    said = refusal(tmp_path, 'ca_certificates = "-----BEGIN CERTIFICATE-----"')

    assert said.startswith('backends."engine".ca_certificates: name a file instead')


@pytest.mark.parametrize("field", ["url", "replica_url"])
def test_the_authorities_of_the_database_are_looked_at_too(
    tmp_path: Path, certificates: Certificates, field: str
) -> None:
    variable = f"TOLLHOUSE_DATABASE__{field.upper()}"

    read(tmp_path, "", **{variable: f"{URL}{certificates.authority}"})
    absent = refusal(tmp_path, "", **{variable: f"{URL}{tmp_path}/absent"})
    key = refusal(tmp_path, "", **{variable: f"{URL}{certificates.key}"})

    place = f"database.{field}: sslrootcert: "
    assert absent == f"{place}the file cannot be read: No such file or directory"
    assert key == place + UNUSABLE
