"""The management extension under `/manage/v1`, which the specification does not have."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import credits as credits_wire
from tollhouse.contract import (
    decisions,
    keys,
    listing,
    policies,
    policy_trials,
    projects,
    rate_limits,
    requests,
    spending_limits,
    usage,
)
from tollhouse.contract.operation import ASKING, declare

_ORGANIZATION = "/manage/v1/organization"
_PROJECTS = f"{_ORGANIZATION}/projects"
_PROJECT = f"{_PROJECTS}/{{project_id}}"
_PROJECT_KEYS = f"{_PROJECT}/api_keys"
_PROJECT_KEY = f"{_PROJECT_KEYS}/{{api_key_id}}"
_POLICIES = f"{_ORGANIZATION}/policies"
_POLICY = f"{_POLICIES}/{{policy_id}}"
_POLICY_RULES = f"{_ORGANIZATION}/policy_rules"
_CREDITS = f"{_ORGANIZATION}/credits"
_SPENDING_LIMITS = f"{_ORGANIZATION}/spending_limits"
_RATE_LIMITS = f"{_ORGANIZATION}/rate_limits"
_REQUESTS = f"{_ORGANIZATION}/requests"

_projects_read = partial(declare, tag="Projects", permission=Permission.PROJECTS_READ)
_projects_write = partial(declare, tag="Projects", permission=Permission.PROJECTS_CREATE)
_keys_read = partial(declare, tag="Project keys", permission=Permission.PROJECT_API_KEYS_READ)
_keys_create = partial(
    declare,
    tag="Project keys",
    permission=Permission.PROJECT_API_KEYS_CREATE,
    result=keys.ManagedProjectKey,
    creates_idempotently=True,
)
_keys_revoke = partial(
    declare,
    tag="Project keys",
    permission=Permission.PROJECT_API_KEYS_REVOKE,
    result=keys.ManagedProjectKey,
)
_policies_read = partial(declare, tag="Policies", permission=Permission.POLICIES_READ)
_policies_write = partial(
    declare,
    tag="Policies",
    permission=Permission.POLICIES_WRITE,
    result=policies.ManagedPolicy,
)
_credits_read = partial(declare, tag="Credits", permission=Permission.BILLING_READ)
_spending_limits_write = partial(
    declare, tag="Spending limits", permission=Permission.SPENDING_LIMITS_WRITE
)
_rate_limits_write = partial(declare, tag="Rate limits", permission=Permission.RATE_LIMITS_WRITE)
_requests_read = partial(declare, tag="Requests", permission=Permission.ACTIVITY_READ)

LIST_PROJECTS = _projects_read(
    "listProjects",
    f"GET {_PROJECTS}",
    "List the projects",
    "OQ-117",
    query=listing.ListQuery,
    result=projects.ProjectList,
)
CREATE_PROJECT = _projects_write(
    "createProject",
    f"POST {_PROJECTS}",
    "Create a project",
    "OQ-117",
    body=projects.CreateProject,
    result=projects.Project,
    creates_idempotently=True,
)
RETRIEVE_PROJECT = _projects_read(
    "retrieveProject", f"GET {_PROJECT}", "Read a project", "OQ-117", result=projects.Project
)
EDIT_PROJECT = _projects_write(
    "editProject",
    f"PATCH {_PROJECT}",
    "Change a project",
    "OQ-86",
    "OQ-117",
    body=projects.EditProject,
    result=projects.Project,
)
LIST_PROJECT_KEYS = _keys_read(
    "listProjectKeys",
    f"GET {_PROJECT_KEYS}",
    "List a project's keys",
    "OQ-87",
    "OQ-154",
    query=listing.ListQuery,
    result=keys.ProjectKeyList,
)
RETRIEVE_PROJECT_KEY = _keys_read(
    "retrieveProjectKey",
    f"GET {_PROJECT_KEY}",
    "Read a project key",
    "OQ-87",
    "OQ-154",
    result=keys.ManagedProjectKey,
)
CREATE_MANAGED_PROJECT_KEY = _keys_create(
    "createManagedProjectKey",
    f"POST {_PROJECT_KEYS}",
    "Create a project key that expires, or may do less",
    "OQ-86",
    "OQ-151",
    body=keys.CreateManagedProjectKey,
)
ROTATE_PROJECT_KEY = _keys_create(
    "rotateProjectKey",
    f"POST {_PROJECT_KEY}/rotate",
    "Give a project key a new secret",
    "OQ-150",
    body=keys.RotateProjectKey,
)
SUSPEND_PROJECT_KEY = _keys_revoke(
    "suspendProjectKey", f"POST {_PROJECT_KEY}/suspend", "Suspend a project key", "OQ-87"
)
RESUME_PROJECT_KEY = _keys_revoke(
    "resumeProjectKey",
    f"POST {_PROJECT_KEY}/resume",
    "End the suspension of a project key",
    "OQ-87",
)
REVOKE_PROJECT_KEY = _keys_revoke(
    "revokeProjectKey", f"POST {_PROJECT_KEY}/revoke", "Revoke a project key for good", "OQ-87"
)
LIST_POLICIES = _policies_read(
    "listPolicies",
    f"GET {_POLICIES}",
    "List the policies",
    "OQ-114",
    query=listing.ListQuery,
    result=policies.PolicyList,
)
RETRIEVE_MANAGED_POLICY = _policies_read(
    "retrieveManagedPolicy",
    f"GET {_POLICY}",
    "Read a policy with what only the management extension shows",
    "OQ-179",
    result=policies.ManagedPolicy,
)
EDIT_MANAGED_POLICY = _policies_write(
    "editManagedPolicy",
    f"PATCH {_POLICY}",
    "Edit a policy's draft, and whether it ends answers early",
    "OQ-179",
    body=policies.EditManagedPolicy,
)
LIST_POLICY_VERSIONS = _policies_read(
    "listPolicyVersions",
    f"GET {_POLICY}/versions",
    "List a policy's published versions",
    "OQ-114",
    "OQ-162",
    query=listing.ListQuery,
    result=policies.PolicyVersionList,
)
RETRIEVE_POLICY_VERSION = _policies_read(
    "retrievePolicyVersion",
    f"GET {_POLICY}/versions/{{version}}",
    "Read a published version",
    "OQ-114",
    "OQ-162",
    result=policies.ManagedPublishedPolicy,
)
PUBLISH_POLICY = _policies_write(
    "publishPolicy",
    f"POST {_POLICY}/publish",
    "Publish a policy's draft",
    "OQ-102",
    "OQ-163",
    body=policies.PublishPolicy,
)
RESUME_POLICY = _policies_write(
    "resumePolicy",
    f"POST {_POLICY}/resume",
    "Apply a paused policy again",
    "OQ-102",
    "OQ-164",
    body=policies.ResumePolicy,
)
ROLL_BACK_POLICY = _policies_write(
    "rollBackPolicy",
    f"POST {_POLICY}/rollback",
    "Publish an older version again, under a new number",
    "OQ-161",
    body=policies.RollBackPolicy,
)
LINT_POLICY = _policies_write(
    "lintPolicy",
    f"POST {_POLICY}/lint",
    "Read a rule for what makes it hard to judge",
    "OQ-178",
    body=policy_trials.LintPolicy,
    result=policy_trials.PolicyRemarkList,
    statuses=ASKING,
)
TEST_POLICY = _policies_write(
    "testPolicy",
    f"POST {_POLICY}/test",
    "Judge a text by a policy's draft, and by what is published",
    "OQ-178",
    body=policy_trials.TryPolicy,
    result=policy_trials.PolicyVerdictList,
    statuses=ASKING,
)
LINT_UNSAVED_RULE = _policies_write(
    "lintUnsavedRule",
    f"POST {_POLICY_RULES}/lint",
    "Read a rule that is not saved for what makes it hard to judge",
    "OQ-210",
    body=policy_trials.LintUnsavedRule,
    result=policy_trials.PolicyRemarkList,
    statuses=ASKING,
)
TEST_UNSAVED_RULE = _policies_write(
    "testUnsavedRule",
    f"POST {_POLICY_RULES}/test",
    "Judge a text by a rule that is not saved",
    "OQ-210",
    body=policy_trials.TryUnsavedRule,
    result=policy_trials.PolicyVerdictList,
    statuses=ASKING,
)
LIST_POLICY_DECISIONS = _policies_read(
    "listPolicyDecisions",
    f"GET {_POLICY}/decisions",
    "List a policy's matches and failures",
    "OQ-176",
    query=listing.ListQuery,
    result=decisions.PolicyDecisionList,
)
REPORT_POLICY = _policies_read(
    "reportPolicy",
    f"GET {_POLICY}/rollups",
    "Count a policy's decisions and scores by the day",
    "OQ-177",
    query=decisions.PolicyRollupsQuery,
    result=decisions.PolicyRollupPage,
)
RETRIEVE_CREDITS = _credits_read(
    "retrieveCredits",
    f"GET {_CREDITS}",
    "Read the balance",
    "OQ-138",
    "OQ-167",
    result=credits_wire.Credits,
)
LIST_CREDIT_ENTRIES = _credits_read(
    "listCreditEntries",
    f"GET {_CREDITS}/entries",
    "List what the credit is made of",
    "OQ-138",
    "OQ-168",
    query=listing.ListQuery,
    result=credits_wire.CreditEntryList,
)
CREATE_TEST_PAYMENT = declare(
    "createTestPayment",
    f"POST {_CREDITS}/test_payments",
    "Get credit in a sandbox without paying",
    "OQ-169",
    tag="Credits",
    permission=Permission.BILLING_WRITE,
    body=credits_wire.CreateTestPayment,
    result=credits_wire.CreditEntry,
    creates_idempotently=True,
)
LIST_SPENDING_LIMITS = declare(
    "listSpendingLimits",
    f"GET {_SPENDING_LIMITS}",
    "List the spending limits with their use",
    "OQ-138",
    "OQ-170",
    tag="Spending limits",
    permission=Permission.SPENDING_LIMITS_READ,
    query=listing.ListQuery,
    result=spending_limits.SpendingLimitList,
)
SET_SPENDING_LIMIT = _spending_limits_write(
    "setSpendingLimit",
    f"PUT {_SPENDING_LIMITS}",
    "Set or change a spending limit",
    "OQ-138",
    "OQ-170",
    body=spending_limits.SetSpendingLimit,
    result=spending_limits.SpendingLimit,
)
CLEAR_SPENDING_LIMIT = _spending_limits_write(
    "clearSpendingLimit",
    f"DELETE {_SPENDING_LIMITS}",
    "Remove a spending limit",
    "OQ-138",
    "OQ-170",
    query=spending_limits.ClearSpendingLimitQuery,
    result=spending_limits.SpendingLimitDeleted,
)
LIST_RATE_LIMITS = declare(
    "listRateLimits",
    f"GET {_RATE_LIMITS}",
    "List the rate limits, the operator's included",
    "OQ-139",
    "OQ-140",
    tag="Rate limits",
    permission=Permission.RATE_LIMITS_READ,
    query=listing.ListQuery,
    result=rate_limits.RateLimitList,
)
SET_RATE_LIMIT = _rate_limits_write(
    "setRateLimit",
    f"PUT {_RATE_LIMITS}",
    "Set or replace a rate limit of the organization's own",
    "OQ-139",
    "OQ-140",
    body=rate_limits.SetRateLimit,
    result=rate_limits.RateLimit,
)
CLEAR_RATE_LIMIT = _rate_limits_write(
    "clearRateLimit",
    f"DELETE {_RATE_LIMITS}",
    "Remove a rate limit of the organization's own",
    "OQ-139",
    "OQ-140",
    query=rate_limits.ClearRateLimitQuery,
    result=rate_limits.RateLimitDeleted,
)
REPORT_USAGE = declare(
    "reportUsage",
    f"GET {_ORGANIZATION}/usage",
    "Report tokens, images and requests in hourly or daily buckets",
    "OQ-138",
    "OQ-171",
    tag="Reports",
    permission=Permission.BILLING_READ,
    query=usage.UsageQuery,
    result=usage.UsagePage,
)
EXPORT_COSTS = declare(
    "exportCosts",
    f"GET {_ORGANIZATION}/costs/focus",
    "Export costs as CSV in the format FOCUS 1.2",
    "OQ-138",
    "OQ-238",
    tag="Reports",
    permission=Permission.BILLING_READ,
    query=usage.FocusQuery,
    result=None,
)
LIST_REQUESTS = _requests_read(
    "listRequests",
    f"GET {_REQUESTS}",
    "List what became of requests",
    "OQ-174",
    query=requests.RequestsQuery,
    result=requests.RequestRecordList,
)
RETRIEVE_REQUEST = _requests_read(
    "retrieveRequest",
    f"GET {_REQUESTS}/{{request_id}}",
    "Read what became of a request",
    "OQ-173",
    result=requests.RequestDetails,
)
REPORT_REQUESTS = _requests_read(
    "reportRequests",
    f"GET {_ORGANIZATION}/request_rollups",
    "Count requests, failures and tokens by the hour",
    "OQ-175",
    query=requests.RequestRollupsQuery,
    result=requests.RequestRollupPage,
)
