"""The given operation on projects."""

from tollhouse.api import parameters
from tollhouse.api.call import Answer, Call
from tollhouse.api.mutations import mutation
from tollhouse.contract import projects as projects_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys.types import Admin
from tollhouse.projects import service


async def archive(call: Call[Admin, None, NoQuery]) -> Answer:
    """POST /v1/organization/projects/{project_id}/archive"""
    async with mutation(call) as tx:
        project = await service.archive(tx, parameters.project_id(call))
    return Answer(body=projects_wire.ProjectDeleted(id=str(project.id), deleted=True))
