"""The operations on policies under `/manage/v1`."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import decisions, listing, policies, policy_trials
from tollhouse.contract.command import Command, Words
from tollhouse.contract.operation import ASKING, declare

_ORGANIZATION = "/manage/v1/organization"
_POLICIES = f"{_ORGANIZATION}/policies"
_POLICY = f"{_POLICIES}/{{policy_id}}"
_POLICY_RULES = f"{_ORGANIZATION}/policy_rules"

_policies_read = partial(declare, tag="Policies", permission=Permission.POLICIES_READ)
_policies_write = partial(
    declare,
    tag="Policies",
    permission=Permission.POLICIES_WRITE,
    result=policies.ManagedPolicy,
)
_policies_publish = partial(_policies_write, result=policy_trials.PolicyInForce)

_VERDICT_COLUMNS = (
    "of outcome score_basis_points lowest_basis_points highest_basis_points "
    "coverage_basis_points threshold_basis_points reason"
)

LIST_POLICIES = _policies_read(
    "listPolicies",
    f"GET {_POLICIES}",
    "List the policies",
    "OQ-114",
    query=listing.ListQuery,
    result=policies.PolicyList,
    command=Command(
        "policy list",
        "List the policies in the order of their creation, drafts included.",
        example="--json",
        columns="id name state current_version has_unpublished_changes",
    ),
)
"""In order of creation, drafts included."""
RETRIEVE_MANAGED_POLICY = _policies_read(
    "retrieveManagedPolicy",
    f"GET {_POLICY}",
    "Read a policy with what only the management extension shows",
    "OQ-179",
    result=policies.ManagedPolicy,
    command=Command(
        "policy show",
        "Show a policy with its draft and its published version.",
        example='"No names"',
        arguments="policy_id",
    ),
)
"""As under `/v1`, and whether it ends answers early."""
EDIT_MANAGED_POLICY = _policies_write(
    "editManagedPolicy",
    f"PATCH {_POLICY}",
    "Edit a policy's draft, and whether it ends answers early",
    "OQ-179",
    body=policies.EditManagedPolicy,
    command=Command(
        "policy edit",
        "Change a draft. The published version keeps applying.",
        example='"No names" --mode enforcing',
        arguments="policy_id",
        words={
            "project_ids": Words(
                "project",
                "A project of the scope `projects`, by name or ID. Can be given several times.",
            ),
        },
    ),
)
"""As under `/v1`, and whether it ends answers early."""
DELETE_POLICY = _policies_write(
    "deletePolicy",
    f"DELETE {_POLICY}",
    "Delete a policy that was never published",
    "OQ-114",
    result=policies.PolicyDeleted,
    command=Command(
        "policy delete",
        "Delete a policy that was never published. Others can be paused.",
        example='"No names" --yes',
        arguments="policy_id",
        question="Delete policy {}?",
    ),
)
"""A policy that was published stays, for the records that name it: it can be paused."""
LIST_POLICY_VERSIONS = _policies_read(
    "listPolicyVersions",
    f"GET {_POLICY}/versions",
    "List a policy's published versions",
    "OQ-114",
    "OQ-162",
    query=listing.ListQuery,
    result=policies.PolicyVersionList,
    command=Command(
        "policy versions",
        "List all published versions of a policy, newest first.",
        example='"No names"',
        arguments="policy_id",
        columns="version current mode direction scope match_threshold_basis_points published_at",
    ),
)
"""Newest first."""
RETRIEVE_POLICY_VERSION = _policies_read(
    "retrievePolicyVersion",
    f"GET {_POLICY}/versions/{{version}}",
    "Read a published version",
    "OQ-114",
    "OQ-162",
    result=policies.ManagedPublishedPolicy,
    command=Command(
        "policy version",
        "Show one published version.",
        example='"No names" 1',
        arguments="policy_id version",
    ),
)
"""A version never changes."""
PUBLISH_POLICY = _policies_publish(
    "publishPolicy",
    f"POST {_POLICY}/publish",
    "Publish a policy's draft",
    "OQ-102",
    "OQ-163",
    "OQ-246",
    body=policies.PublishPolicy,
    command=Command(
        "policy publish",
        (
            "Publish the draft as the next version. It applies at once unless the policy is "
            "paused.\n\nThe judge is asked first."
        ),
        example='"No names"',
        arguments="policy_id",
    ),
)
"""The draft becomes the next version and applies at once, unless the policy is paused. The judge
is asked first."""
RESUME_POLICY = _policies_publish(
    "resumePolicy",
    f"POST {_POLICY}/resume",
    "Apply a paused policy again",
    "OQ-102",
    "OQ-164",
    "OQ-246",
    body=policies.ResumePolicy,
    command=Command(
        "policy resume",
        (
            "Apply a paused policy again, in the mode of its current version.\n\nThe judge is "
            "asked first."
        ),
        example='"No names"',
        arguments="policy_id",
    ),
)
"""In the mode that was published last. The judge is asked first."""
ROLL_BACK_POLICY = _policies_publish(
    "rollBackPolicy",
    f"POST {_POLICY}/rollback",
    "Publish an older version again, under a new number",
    "OQ-161",
    "OQ-246",
    body=policies.RollBackPolicy,
    command=Command(
        "policy rollback",
        "Publish an older version again, under the next number. The draft is not changed.",
        example='"No names" 1',
        arguments="policy_id version",
    ),
)
"""The draft stays as it is. The judge is asked first."""
LINT_POLICY = _policies_write(
    "lintPolicy",
    f"POST {_POLICY}/lint",
    "Read a rule for what makes it hard to judge",
    "OQ-178",
    body=policy_trials.LintPolicy,
    result=policy_trials.PolicyRemarkList,
    statuses=ASKING,
    command=Command(
        "policy lint",
        "Check the rule of a draft for wording that is hard to judge. The judge is not asked.",
        example='"No names"',
        arguments="policy_id",
        columns="weakness advice",
    ),
)
"""By form alone: the judge is not asked."""
TEST_POLICY = _policies_write(
    "testPolicy",
    f"POST {_POLICY}/test",
    "Judge a text by a policy's draft, and by what is published",
    "OQ-178",
    body=policy_trials.TryPolicy,
    result=policy_trials.PolicyVerdictList,
    statuses=ASKING,
    command=Command(
        "policy test",
        "Judge a text by the draft and by the published version. Nothing is stored or charged.",
        example='"No names" --text "Call me on 555 0100."',
        arguments="policy_id",
        columns=_VERDICT_COLUMNS,
        words={
            "rule": Words("rule", "A rule to judge by instead of the draft's, or @FILE."),
        },
    ),
)
"""The judge is asked. Nothing is stored or charged."""
LINT_UNSAVED_RULE = _policies_write(
    "lintUnsavedRule",
    f"POST {_POLICY_RULES}/lint",
    "Read a rule that is not saved for what makes it hard to judge",
    "OQ-210",
    body=policy_trials.LintUnsavedRule,
    result=policy_trials.PolicyRemarkList,
    statuses=ASKING,
    command=Command(
        "rule lint",
        (
            "Check a rule that is not saved for wording that is hard to judge. The judge is "
            "not asked."
        ),
        example='"Does the text name a person?"',
        arguments="rule",
        columns="weakness advice",
    ),
)
"""By form alone: the judge is not asked."""
TEST_UNSAVED_RULE = _policies_write(
    "testUnsavedRule",
    f"POST {_POLICY_RULES}/test",
    "Judge a text by a rule that is not saved",
    "OQ-210",
    body=policy_trials.TryUnsavedRule,
    result=policy_trials.PolicyVerdictList,
    statuses=ASKING,
    command=Command(
        "rule test",
        "Judge a text by a rule that is not saved. Nothing is stored or charged.",
        example='"Does the text name a person?" --text "Call Ada."',
        arguments="rule",
        columns=_VERDICT_COLUMNS,
    ),
)
"""The judge is asked. Nothing is stored or charged."""
LIST_POLICY_DECISIONS = _policies_read(
    "listPolicyDecisions",
    f"GET {_POLICY}/decisions",
    "List a policy's matches and failures",
    "OQ-176",
    query=listing.ListQuery,
    result=decisions.PolicyDecisionList,
    command=Command(
        "policy decisions",
        "List the matches and failures of a policy, newest first.",
        example='"No names"',
        arguments="policy_id",
        columns=(
            "created_at request_id version direction mode outcome action score_basis_points reason"
        ),
        shown_max=20,
    ),
)
"""Newest first, with scores, without what was judged."""
REPORT_POLICY = _policies_read(
    "reportPolicy",
    f"GET {_POLICY}/rollups",
    "Count a policy's decisions and scores by the day",
    "OQ-177",
    query=decisions.PolicyRollupsQuery,
    result=decisions.PolicyRollupPage,
    command=Command(
        "policy report",
        "Count the decisions of a policy by the day.",
        example='"No names" --from 7d',
        arguments="policy_id",
        columns="start_time version direction mode matches no_matches failures skipped",
        starts="30d",
    ),
)
"""For at most 400 days."""
