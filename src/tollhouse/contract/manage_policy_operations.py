"""The management extension for policies: what leads from a draft to what applies, and back."""

from tollhouse.base.permissions import Permission
from tollhouse.contract import decisions, listing, policies, policy_trials
from tollhouse.contract.operation import Access, Credential, Operation
from tollhouse.contract.origins import Origin
from tollhouse.contract.statuses import ASKING, READING, WRITING

_POLICIES = "/manage/v1/organization/policies"
_POLICY = f"{_POLICIES}/{{policy_id}}"
_READ = Access(credential=Credential.ADMIN, permission=Permission.POLICIES_READ)
_WRITE = Access(credential=Credential.ADMIN, permission=Permission.POLICIES_WRITE)

LIST_POLICIES = Operation(
    id="listPolicies",
    method="GET",
    path=_POLICIES,
    tag="Policies",
    summary="List the policies",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-114",),
    query=listing.ListQuery,
    result=policies.PolicyList,
    statuses=READING,
)
RETRIEVE_MANAGED_POLICY = Operation(
    id="retrieveManagedPolicy",
    method="GET",
    path=_POLICY,
    tag="Policies",
    summary="Read a policy with what only the management extension shows",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-179",),
    result=policies.ManagedPolicy,
    statuses=READING,
)
EDIT_MANAGED_POLICY = Operation(
    id="editManagedPolicy",
    method="PATCH",
    path=_POLICY,
    tag="Policies",
    summary="Edit a policy's draft, and whether it ends answers early",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-179",),
    body=policies.EditManagedPolicy,
    result=policies.ManagedPolicy,
    statuses=WRITING,
)
LIST_POLICY_VERSIONS = Operation(
    id="listPolicyVersions",
    method="GET",
    path=f"{_POLICY}/versions",
    tag="Policies",
    summary="List a policy's published versions",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-114", "OQ-162"),
    query=listing.ListQuery,
    result=policies.PolicyVersionList,
    statuses=READING,
)
RETRIEVE_POLICY_VERSION = Operation(
    id="retrievePolicyVersion",
    method="GET",
    path=f"{_POLICY}/versions/{{version}}",
    tag="Policies",
    summary="Read a published version",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-114", "OQ-162"),
    result=policies.ManagedPublishedPolicy,
    statuses=READING,
)
PUBLISH_POLICY = Operation(
    id="publishPolicy",
    method="POST",
    path=f"{_POLICY}/publish",
    tag="Policies",
    summary="Publish a policy's draft",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-102", "OQ-163"),
    body=policies.PublishPolicy,
    result=policies.ManagedPolicy,
    statuses=WRITING,
)
RESUME_POLICY = Operation(
    id="resumePolicy",
    method="POST",
    path=f"{_POLICY}/resume",
    tag="Policies",
    summary="Apply a paused policy again",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-102", "OQ-164"),
    body=policies.ResumePolicy,
    result=policies.ManagedPolicy,
    statuses=WRITING,
)
ROLL_BACK_POLICY = Operation(
    id="rollBackPolicy",
    method="POST",
    path=f"{_POLICY}/rollback",
    tag="Policies",
    summary="Publish an older version again, under a new number",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-161",),
    body=policies.RollBackPolicy,
    result=policies.ManagedPolicy,
    statuses=WRITING,
)
LINT_POLICY = Operation(
    id="lintPolicy",
    method="POST",
    path=f"{_POLICY}/lint",
    tag="Policies",
    summary="Read a rule for what makes it hard to judge",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-178",),
    body=policy_trials.LintPolicy,
    result=policy_trials.PolicyRemarkList,
    statuses=ASKING,
)
TEST_POLICY = Operation(
    id="testPolicy",
    method="POST",
    path=f"{_POLICY}/test",
    tag="Policies",
    summary="Judge a text by a policy's draft, and by what is published",
    access=_WRITE,
    origin=Origin.EXTENSION,
    questions=("OQ-178",),
    body=policy_trials.TryPolicy,
    result=policy_trials.PolicyVerdictList,
    statuses=ASKING,
)
LIST_POLICY_DECISIONS = Operation(
    id="listPolicyDecisions",
    method="GET",
    path=f"{_POLICY}/decisions",
    tag="Policies",
    summary="List a policy's matches and failures",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-176",),
    query=listing.ListQuery,
    result=decisions.PolicyDecisionList,
    statuses=READING,
)
REPORT_POLICY = Operation(
    id="reportPolicy",
    method="GET",
    path=f"{_POLICY}/rollups",
    tag="Policies",
    summary="Count a policy's decisions and scores by the day",
    access=_READ,
    origin=Origin.EXTENSION,
    questions=("OQ-177",),
    query=decisions.PolicyRollupsQuery,
    result=decisions.PolicyRollupPage,
    statuses=READING,
)
