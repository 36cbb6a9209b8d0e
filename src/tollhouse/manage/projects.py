"""Projects: list, create, read, edit."""

from dataclasses import dataclass
from uuid import UUID

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase, Creation
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import ProjectId, time_ordered_uuid
from tollhouse.contract import projects as projects_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.projects import service
from tollhouse.projects.types import Project
from tollhouse.storage.database import Mutation


@dataclass(frozen=True, kw_only=True, slots=True)
class ManagedProjectHandlers:
    """Handlers of the operations on projects under `/manage/v1`."""

    database: AdminDatabase
    projects_max: int

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/projects"""
        after = parameters.cursor(call.query.after)
        async with self.database.transaction() as tx:
            found = await service.page(
                tx,
                call.organization_id,
                after=None if after is None else ProjectId(after),
                limit=call.query.limit + 1,
            )
        return OperationAnswer(
            body=wire.page(projects_wire.ProjectList, found, call.query.limit, wire.project)
        )

    async def create(
        self,
        call: OperationCall[Admin, projects_wire.CreateProject, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/projects"""
        project_id = ProjectId(time_ordered_uuid())

        async def make(tx: Mutation) -> Project:
            await service.require_room(tx, self.projects_max)
            return await service.create(tx, project_id=project_id, name=call.body.name)

        async def find(tx: Mutation, made_id: UUID) -> Project:
            return await service.retrieve(tx, tx.organization_id, ProjectId(made_id))

        created = await self.database.create_once(
            call, Creation(resource_id=project_id, create=make, find=find)
        )
        return OperationAnswer(body=wire.project(created.resource), headers=created.headers)

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/projects/{project_id}"""
        async with self.database.transaction() as tx:
            project = await service.retrieve(tx, call.organization_id, parameters.project_id(call))
        return OperationAnswer(body=wire.project(project))

    async def edit(
        self, call: OperationCall[Admin, projects_wire.EditProject, NoQuery]
    ) -> OperationAnswer:
        """PATCH /manage/v1/organization/projects/{project_id}"""
        async with self.database.mutation_by(call) as tx:
            project = await service.edit(
                tx,
                parameters.project_id(call),
                name=call.body.name,
                allowed_models=call.body.allowed_models,
            )
        return OperationAnswer(body=wire.project(project))
