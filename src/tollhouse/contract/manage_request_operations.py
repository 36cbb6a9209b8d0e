"""The management extension for activity: what became of requests."""

from tollhouse.base.permissions import Permission
from tollhouse.contract import requests
from tollhouse.contract.operation import Access, Credential, Operation
from tollhouse.contract.origins import Origin
from tollhouse.contract.statuses import READING

_REQUESTS = "/manage/v1/organization/requests"
_READ = Access(credential=Credential.ADMIN, permission=Permission.ACTIVITY_READ)

LIST_REQUESTS = Operation(
    id="listRequests",
    method="GET",
    path=_REQUESTS,
    tag="Requests",
    summary="List what became of requests",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-174",),
    query=requests.RequestsQuery,
    result=requests.RequestRecordList,
    statuses=READING,
)
RETRIEVE_REQUEST = Operation(
    id="retrieveRequest",
    method="GET",
    path=f"{_REQUESTS}/{{request_id}}",
    tag="Requests",
    summary="Read what became of a request",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-173",),
    result=requests.RequestRecord,
    statuses=READING,
)
REPORT_REQUESTS = Operation(
    id="reportRequests",
    method="GET",
    path="/manage/v1/organization/request_rollups",
    tag="Requests",
    summary="Count requests, failures and tokens by the hour",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-175",),
    query=requests.RequestRollupsQuery,
    result=requests.RequestRollupPage,
    statuses=READING,
)
