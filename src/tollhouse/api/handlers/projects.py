"""The operation on projects under `/v1`."""

from dataclasses import dataclass

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.contract import projects as projects_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys.types import Admin
from tollhouse.projects import service


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectHandlers:
    """Handlers of the operations on projects under `/v1`."""

    database: AdminDatabase

    async def archive(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """POST /v1/organization/projects/{project_id}/archive"""
        async with self.database.mutation_by(call) as tx:
            project = await service.archive(tx, parameters.project_id(call))
        return OperationAnswer(body=projects_wire.ProjectDeleted(id=str(project.id), deleted=True))
