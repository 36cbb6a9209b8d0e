"""The deployment of this host, administered by its operator: the same handlers in this process."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

import click
import msgspec

from tollhouse import settings as configuration
from tollhouse.api.call import FileAnswer, Handler, OperationAnswer, OperationCall
from tollhouse.api.head import Head
from tollhouse.base.ids import OrganizationId, RequestId, parse_uuid, time_ordered_uuid
from tollhouse.base.permissions import Permission
from tollhouse.cli import session
from tollhouse.cli.verbs.gateway import Headers, OperationRequest
from tollhouse.cli.verbs.host_database import OperatorDatabase, operator_of
from tollhouse.cli.verbs.host_services import HostServices
from tollhouse.contract import operator_operations
from tollhouse.contract.decoding import decode, decode_query, screen
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.operation import AnyOperation, OperatorOperation
from tollhouse.organizations import service as organizations
from tollhouse.organizations.types import Organization, OrganizationStatus
from tollhouse.storage.revisions import refuse_other_schema
from tollhouse.storage.sealing import Sealer

NO_ORGANIZATION: Final = OrganizationId(UUID(int=0))
PAGE_SIZE: Final = 1_000


class HostGateway:
    """Answers operations by the handlers of the gateway, with the operator's authority."""

    identity = "operator"

    def __init__(self, settings_path: Path, organization: str | None) -> None:
        self._settings_path = settings_path
        self._organization = organization
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()

    def now(self) -> datetime:
        """Return the time of the database."""
        return self._session.clock.now()

    def __enter__(self) -> Self:
        """Open a session. Raises `SchemaMismatch` if the schema is another version's."""
        self._runner.__enter__()
        try:
            self._runner.run(self._open())
        except BaseException:
            self._runner.close()
            raise
        return self

    async def _open(self) -> None:
        opened = session.opened(configuration.load(self._settings_path))
        self._session = await self._opened.enter_async_context(opened)
        try:
            await refuse_other_schema(self._session.database)
        except BaseException:
            await self._opened.aclose()
            raise
        self._database = OperatorDatabase(
            self._session.database,
            self._session.clock,
            Sealer(self._session.database, self._session.masters),
            record_days=self._session.settings.idempotency.record_days,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the session."""
        self._runner.run(self._opened.aclose())
        self._runner.close()

    def call(
        self, operation: AnyOperation, request: OperationRequest
    ) -> tuple[dict[str, Any], Headers]:
        """Return the answer and its headers. Raises `GatewayError`."""
        answer = self._runner.run(self._answer(operation, request))
        assert isinstance(answer, OperationAnswer), "only a file has no type"
        return msgspec.json.decode(msgspec.json.encode(answer.body)), dict(answer.headers)

    def download(self, operation: AnyOperation, request: OperationRequest) -> Iterator[bytes]:
        """Yield the pieces of a file. Raises `GatewayError`."""
        answer = self._runner.run(self._answer(operation, request))
        assert isinstance(answer, FileAnswer), "the operation answers a file"
        yield answer.first
        while (piece := self._runner.run(_next(answer.rest))) is not None:
            yield piece

    async def _answer(
        self, operation: AnyOperation, request: OperationRequest
    ) -> OperationAnswer | FileAnswer:
        handler = await self._handler(operation)
        call = await self._call(operation, request)
        return await handler(call)

    async def _call(
        self, operation: AnyOperation, request: OperationRequest
    ) -> OperationCall[Any, Any, Any]:
        tree = None if operation.body is None else screen(msgspec.json.encode(request.body or {}))
        query = request.encoded_query().encode()
        owner = await self._owner(operation, request)
        is_operators = isinstance(operation, OperatorOperation)
        return OperationCall(
            request_id=RequestId(time_ordered_uuid()),
            caller=operator_of(owner),
            permission=(Permission.PROJECTS_READ if is_operators else operation.access.permission),
            now=self._session.clock.now(),
            head=Head(()),
            path=request.path,
            target=request.target(operation),
            query=decode_query(query, operation.query or NoQuery, ignores_unknown=False),
            body=None if operation.body is None else decode(tree, operation.body),
            tree=tree,
            body_bytes=0,
            idempotency_key=request.idempotency_key,
            charge=_charge_nothing,
        )

    async def _owner(self, operation: AnyOperation, request: OperationRequest) -> OrganizationId:
        """Return the organization of a call: that of the path or the option, or else the only one.

        A request is found in whichever organization it was made.
        """
        if operation is operator_operations.CREATE_ORGANIZATION:
            return OrganizationId(time_ordered_uuid())
        if "organization_id" in request.path:
            return (await self._find(request.path["organization_id"])).id
        if isinstance(operation, OperatorOperation) and not operation.is_of_organization:
            return NO_ORGANIZATION
        if self._organization is not None:
            return (await self._find(self._organization)).id
        if operation.id == "retrieveRequest":
            request_id = parse_uuid(request.path["request_id"])
            if request_id is not None:
                from tollhouse.activity import service  # noqa: PLC0415 - for one operation

                async with self._database.transaction() as tx:
                    return (await service.find(tx, RequestId(request_id))).organization_id
        return (await self._session.organization(None)).id

    async def _find(self, wanted: str) -> Organization:
        """Return the organization of an ID or a name. Raises `UsageError` if several have it."""
        organization_id = parse_uuid(wanted)
        async with self._database.transaction() as tx:
            if organization_id is not None:
                return await organizations.retrieve(tx, OrganizationId(organization_id))
            found: list[Organization] = []
            last: OrganizationId | None = None
            while page := await organizations.page(tx, after=last, limit=PAGE_SIZE):
                last = page[-1].id
                found += (one for one in page if one.name == wanted)
        is_open = [one for one in found if one.status is not OrganizationStatus.CLOSED]
        match is_open or found:
            case [one]:
                return one
            case []:
                message = f"No organization is named {wanted!r}. `tollhouse org list` lists them."
            case several:
                ids = ", ".join(str(one.id) for one in several)
                message = f"Several organizations are named {wanted!r}: {ids}. Give an ID."
        raise click.UsageError(message)

    async def _handler(self, operation: AnyOperation) -> Handler:
        if isinstance(operation, OperatorOperation):
            from tollhouse.manage.operator import handlers  # noqa: PLC0415 - not for most verbs

            return handlers(self._database)[operation.id]
        services = HostServices(self._session, self._database, self._opened)
        routes = await services.routes(operation)
        (found,) = (each.handler for each in routes if each.operation is operation)
        assert found is not None, "an Admin operation has a handler"
        return found


async def _next(rest: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(rest, None)


def _charge_nothing(_: float) -> None:
    """Do nothing: only a worker bounds the shares of its event loop."""
