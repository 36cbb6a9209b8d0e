"""Projects: list, create, read, edit."""

from uuid import UUID

from tollhouse.api import parameters, wire
from tollhouse.api.call import Answer, Call
from tollhouse.api.idempotency import Creation, create_once
from tollhouse.api.mutations import mutation
from tollhouse.base.ids import ProjectId, time_ordered_uuid
from tollhouse.contract import projects as projects_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.projects import service
from tollhouse.projects.types import Project
from tollhouse.storage.database import Mutation


async def page(call: Call[Admin, None, ListQuery]) -> Answer:
    """GET /manage/v1/organization/projects"""
    after = parameters.cursor(call.query.after)
    async with call.house.database.transaction() as tx:
        found = await service.page(
            tx,
            call.organization_id,
            after=None if after is None else ProjectId(after),
            limit=call.query.limit + 1,
        )
    return Answer(body=wire.page(projects_wire.ProjectList, found, call.query.limit, wire.project))


async def create(call: Call[Admin, projects_wire.CreateProject, NoQuery]) -> Answer:
    """POST /manage/v1/organization/projects"""
    project_id = ProjectId(time_ordered_uuid())

    async def make(tx: Mutation) -> Project:
        await service.require_room(tx, call.house.quotas.projects)
        return await service.create(tx, project_id=project_id, name=call.body.name)

    async def find(tx: Mutation, made_id: UUID) -> Project:
        return await service.retrieve(tx, tx.organization_id, ProjectId(made_id))

    created = await create_once(call, Creation(resource_id=project_id, create=make, find=find))
    return Answer(body=wire.project(created.resource), headers=created.headers)


async def retrieve(call: Call[Admin, None, NoQuery]) -> Answer:
    """GET /manage/v1/organization/projects/{project_id}"""
    async with call.house.database.transaction() as tx:
        project = await service.retrieve(tx, call.organization_id, parameters.project_id(call))
    return Answer(body=wire.project(project))


async def edit(call: Call[Admin, projects_wire.EditProject, NoQuery]) -> Answer:
    """PATCH /manage/v1/organization/projects/{project_id}"""
    async with mutation(call) as tx:
        project = await service.edit(
            tx,
            parameters.project_id(call),
            name=call.body.name,
            allowed_models=call.body.allowed_models,
        )
    return Answer(body=wire.project(project))
