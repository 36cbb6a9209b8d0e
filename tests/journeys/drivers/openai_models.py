"""Models by OpenAI's SDK."""

from tests.journeys.drivers.checking import Check, Client, equal, got, items


async def retrieve(client: Client) -> None:
    name = client.stage["model"]
    model = await got(client.open().models.retrieve(name))

    equal(model.id, name)
    equal(model.object, "model")
    equal(model.owned_by, client.stage["owned_by"])
    equal(model.created, client.stage["created"])


async def listing(client: Client) -> None:
    listed = await got(client.open().models.list())

    equal({model.id for model in await items(listed)}, set(client.stage["models"]))


CHECKS: dict[str, Check] = {"models.retrieve": retrieve, "models.list": listing}
