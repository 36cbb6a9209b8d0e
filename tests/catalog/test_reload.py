"""The catalog of a running service: exchanged as a whole, or kept."""

import signal
from pathlib import Path

import msgspec

from tests.backends.wire import running_upstream
from tests.support import catalogs
from tests.support.certificates import make_certificates
from tests.support.deployment import chat, customer_of, offering
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import Service, as_toml, running_service
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

CREDENTIAL = "sk-hunter2"
INFO = "tollhouse_configuration_info{"


def digest(page: str) -> str:
    """What says which configuration a host has."""
    (line,) = [each for each in page.splitlines() if each.startswith(INFO)]
    return line


async def offered(service: Service, key: str) -> list[str]:
    async with service.client(key) as client:
        return [model["id"] for model in (await client.get("/v1/models")).json()["data"]]


async def test_a_bad_catalog_is_refused_with_a_reason_and_a_good_one_is_taken(
    settings: Settings, org: OrganizationFixture, tmp_path: Path
) -> None:
    with_one = msgspec.structs.replace(settings, backends=catalogs.BACKENDS, models=catalogs.MODELS)
    bad = msgspec.structs.replace(with_one, models=catalogs.model(backend="absent"))
    place = tmp_path / "credential"
    place.write_text(CREDENTIAL, encoding="utf-8")
    with_two = msgspec.structs.replace(
        with_one,
        backends=catalogs.backend(api_key_file=str(place)),
        models=catalogs.MODELS | {"another": catalogs.MODELS["example/model-a"]},
    )
    key = await org.project_key(await org.project())

    def exchange(service: Service, other: Settings) -> None:
        (tmp_path / "tollhouse.toml").write_text(as_toml(other), encoding="utf-8")
        service.process.send_signal(signal.SIGHUP)

    async with running_service(with_one, tmp_path) as service:
        at_first, at_start = await offered(service, key.value), await service.metrics()
        exchange(service, bad)
        refused = await service.wait_for_event("reload_refused")
        after_refusal = await service.metrics()
        still = await offered(service, key.value)
        exchange(service, with_two)
        await service.wait_for_event("reloaded")
        after_reload = await service.metrics()
        in_the_end = await offered(service, key.value)
        exit_code = await service.stop()

    assert at_first == still == ["example/model-a"]
    assert refused["reason"] == 'models."example/model-a".backend: there is no such backend'
    assert in_the_end == ["example/model-a", "another"]
    assert exit_code == 0
    assert 'tollhouse_last_reload{outcome="refused"} 1.0' in after_refusal
    assert 'tollhouse_last_reload{outcome="done"} 1.0' in after_reload
    assert digest(at_start) == digest(after_refusal) != digest(after_reload)
    assert CREDENTIAL not in service.log()


async def test_renewed_authorities_are_read_by_a_reload_and_unusable_ones_refuse_it(
    settings: Settings, org: OrganizationFixture, tmp_path: Path
) -> None:
    certificates = make_certificates(tmp_path / "engine")
    ca_file = make_certificates(tmp_path / "other").authority

    async def answered(service: Service, key: str) -> int:
        async with service.client(key) as client:
            return (await client.post("/v1/chat/completions", json=chat())).status_code

    async with running_upstream(certificates.server_context()) as upstream:
        offered = offering(settings, upstream.url, ca_file=str(ca_file))
        async with running_service(offered, tmp_path) as service:
            key = (await customer_of(service, ScriptedUpstream(), org)).key.value
            before = await answered(service, key)
            ca_file.write_bytes(certificates.authority.read_bytes())
            service.process.send_signal(signal.SIGHUP)
            await service.wait_for_event("reloaded")
            after = await answered(service, key)
            ca_file.write_bytes(b"")
            service.process.send_signal(signal.SIGHUP)
            refused = await service.wait_for_event("reload_refused")
            still = await answered(service, key)
            await service.stop()

    assert (before, after, still) == (502, 200, 200)
    assert refused["reason"] == (
        'backends."scripted".ca_file: the file is not one of certificates in PEM form'
    )
