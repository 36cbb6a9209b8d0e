"""The catalog of a running service: exchanged as a whole, or kept."""

import signal
from pathlib import Path

import msgspec

from tests.support import catalogs
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import Service, as_toml, running_service
from tollhouse.settings import Settings

CREDENTIAL = "sk-hunter2"


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
        at_first = await offered(service, key.value)
        exchange(service, bad)
        refused = await service.wait_for_event("reload_refused")
        still = await offered(service, key.value)
        exchange(service, with_two)
        await service.wait_for_event("reloaded")
        in_the_end = await offered(service, key.value)
        exit_code = await service.stop()

    assert at_first == still == ["example/model-a"]
    assert refused["reason"] == 'models."example/model-a".backend: there is no such backend'
    assert in_the_end == ["example/model-a", "another"]
    assert exit_code == 0
    assert CREDENTIAL not in service.log()
