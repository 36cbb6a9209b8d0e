"""Administration by OpenAI's SDK, through the one base URL that has all organization routes."""

from typing import Any

from tests.journeys.drivers.checking import Check, Client, equal, got, holds, items


def opened(client: Client) -> Any:  # noqa: ANN401 - whatever the SDK has
    admin = client.stage["keys"]["admin"]
    base_url = client.stage["base_url"] + "/manage/v1"
    return client.open(
        api_key=admin, admin_api_key=admin, base_url=base_url, _strict_response_validation=False
    ).admin.organization


async def keys(client: Client) -> None:
    """Two creations without a header are two keys."""
    found = opened(client).admin_api_keys
    made = [await got(found.create(name=client.label)) for _ in range(2)]
    read = await got(found.retrieve(made[0].id))
    listed = {each.id for each in await items(await got(found.list(limit=1)))}
    gone = await got(found.delete(made[0].id))

    equal((read.id, read.name, read.object), (made[0].id, client.label, made[0].object))
    holds(made[0].value != made[1].value)
    holds({each.id for each in made} <= listed)
    equal((gone.id, gone.deleted), (made[0].id, True))
    try:
        await got(found.retrieve(made[0].id))
    except client.sdk.NotFoundError as error:
        equal(error.code, "api_key_not_found")
    else:
        raise AssertionError("a revoked key was read")


async def projects(client: Client) -> None:
    found = opened(client).projects
    made = await got(found.create(name=client.label))
    changed = await got(found.update(made.id, name="renamed"))
    read = await got(found.retrieve(made.id))
    project_keys = await items(await got(found.api_keys.list(made.id)))
    archived = await got(found.archive(made.id))
    listed = {each.id: each.status for each in await items(await got(found.list(limit=1)))}

    equal((changed.id, read.name), (made.id, "renamed"))
    holds(not project_keys)
    equal((archived.id, listed[made.id]), (made.id, "archived"))


async def reports(client: Client) -> None:
    found = opened(client)
    usage, made = found.usage, await got(found.admin_api_keys.create(name=client.label))
    start = made.created_at - 3_600
    costs = await got(usage.costs(start_time=start, group_by=["line_item"]))
    used = await got(usage.completions(start_time=start, group_by=["model"], bucket_width="1h"))
    results = [result for bucket in used.data for result in bucket.results]

    equal((costs.object, used.has_more), ("page", False))
    holds(sum(result.num_model_requests for result in results) > 0)
    holds(all(result.input_tokens > 0 for result in results if result.model))


CHECKS: dict[str, Check] = {
    "admin.keys": keys,
    "admin.projects": projects,
    "admin.reports": reports,
}
