"""The management extension on projects and their keys, which the specification does not have."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import keys, listing, projects
from tollhouse.contract.command import Command, Words
from tollhouse.contract.operation import declare

_PROJECTS = "/manage/v1/organization/projects"
_PROJECT = f"{_PROJECTS}/{{project_id}}"
_PROJECT_KEYS = f"{_PROJECT}/api_keys"
_PROJECT_KEY = f"{_PROJECT_KEYS}/{{api_key_id}}"

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

_ONE_KEY = {
    "project_id": Words(
        "project", "The project of the key, by name or ID. When left out, all are searched."
    )
}

LIST_PROJECTS = _projects_read(
    "listProjects",
    f"GET {_PROJECTS}",
    "List the projects",
    "OQ-117",
    query=listing.ListQuery,
    result=projects.ProjectList,
    command=Command(
        "project list",
        "List the projects in the order of their creation, with archived ones.",
        example="--json",
        columns="id name status created_at archived_at",
    ),
)
"""In order of creation, archived ones included."""
CREATE_PROJECT = _projects_write(
    "createProject",
    f"POST {_PROJECTS}",
    "Create a project",
    "OQ-117",
    body=projects.CreateProject,
    result=projects.Project,
    creates_idempotently=True,
    command=Command(
        "project create",
        "Create a project. Names need not be unique.",
        example="search",
        arguments="name",
        is_creation=True,
    ),
)
"""A project owns keys, and can have limits and policies of its own."""
RETRIEVE_PROJECT = _projects_read(
    "retrieveProject",
    f"GET {_PROJECT}",
    "Read a project",
    "OQ-117",
    result=projects.Project,
    command=Command(
        "project show",
        "Show one project, and the models that it is limited to.",
        example="search",
        arguments="project_id",
    ),
)
"""An archived one too."""
EDIT_PROJECT = _projects_write(
    "editProject",
    f"PATCH {_PROJECT}",
    "Change a project",
    "OQ-86",
    "OQ-117",
    body=projects.EditProject,
    result=projects.Project,
    accepts_post=True,
    command=Command(
        "project edit",
        "Rename a project, or limit it to some models. Its keys can be limited further.",
        example="search --model example/model-a --model example/model-b",
        arguments="project_id",
    ),
)
"""Changes the fields that are sent."""
LIST_PROJECT_KEYS = _keys_read(
    "listProjectKeys",
    f"GET {_PROJECT_KEYS}",
    "List a project's keys",
    "OQ-87",
    "OQ-154",
    query=listing.ListQuery,
    result=keys.ProjectKeyList,
    command=Command(
        "key list",
        "List the keys of a project in every state, without their values.",
        example="--project search",
        columns="id name status redacted_value last_used_at expires_at previous_value_expires_at",
    ),
)
"""In order of creation, without values. Revoked ones are listed too."""
RETRIEVE_PROJECT_KEY = _keys_read(
    "retrieveProjectKey",
    f"GET {_PROJECT_KEY}",
    "Read a project key",
    "OQ-87",
    "OQ-154",
    result=keys.ManagedProjectKey,
    command=Command(
        "key show",
        "Show one key, without its value.",
        example="KEY_ID",
        arguments="api_key_id",
        words=_ONE_KEY,
    ),
)
"""Without its value, which only the creation returns."""
CREATE_MANAGED_PROJECT_KEY = _keys_create(
    "createManagedProjectKey",
    f"POST {_PROJECT_KEYS}",
    "Create a project key that expires, or may do less",
    "OQ-86",
    "OQ-151",
    body=keys.CreateManagedProjectKey,
    command=Command(
        "key create",
        ("Create a key for a project, and cap what it may spend.\n\nIts value is shown only here."),
        example='"batch jobs" --project search --cap 5 --expires 90d',
        arguments="name",
        is_creation=True,
    ),
)
"""The `value` is in this answer alone, and for 24 hours in a repetition with the same `Idempotency-
Key`."""
ROTATE_PROJECT_KEY = _keys_create(
    "rotateProjectKey",
    f"POST {_PROJECT_KEY}/rotate",
    "Give a project key a new secret",
    "OQ-150",
    body=keys.RotateProjectKey,
    command=Command(
        "key rotate",
        (
            "Give a key a new value. Its ID, permissions, caps and history stay.\n\nThe new "
            "value is shown only here. If the old one has leaked, end it at once with "
            "--overlap-seconds 0."
        ),
        example="KEY_ID --overlap-seconds 3600",
        arguments="api_key_id",
        words={
            **_ONE_KEY,
            "overlap_seconds": Words(
                "overlap-seconds", "How long the old value keeps working; 0 if it has leaked."
            ),
        },
    ),
)
"""The key keeps its ID. The new `value` is in this answer alone; the old one works on for
`overlap_seconds`. After a leak, send 0."""
END_PREVIOUS_VALUE = _keys_revoke(
    "endPreviousProjectKeyValue",
    f"POST {_PROJECT_KEY}/end_previous",
    "End the value before the last rotation",
    "OQ-150",
    command=Command(
        "key end-previous",
        "End the value before the last rotation, before its overlap is over.",
        example="KEY_ID",
        arguments="api_key_id",
        words=_ONE_KEY,
    ),
)
"""The old value fails from then on, before its overlap is over; the new one works on. Nothing
changes if no old value works."""
SUSPEND_PROJECT_KEY = _keys_revoke(
    "suspendProjectKey",
    f"POST {_PROJECT_KEY}/suspend",
    "Suspend a project key",
    "OQ-87",
    command=Command(
        "key suspend",
        "Stop a key until it is resumed.",
        example="KEY_ID",
        arguments="api_key_id",
        words=_ONE_KEY,
    ),
)
"""Requests with the key fail until it is resumed."""
RESUME_PROJECT_KEY = _keys_revoke(
    "resumeProjectKey",
    f"POST {_PROJECT_KEY}/resume",
    "End the suspension of a project key",
    "OQ-87",
    command=Command(
        "key resume",
        "Let a suspended key work again, with the same value.",
        example="KEY_ID",
        arguments="api_key_id",
        words=_ONE_KEY,
    ),
)
"""The key works again, with the same value."""
REVOKE_PROJECT_KEY = _keys_revoke(
    "revokeProjectKey",
    f"POST {_PROJECT_KEY}/revoke",
    "Revoke a project key for good",
    "OQ-87",
    command=Command(
        "key revoke",
        "Revoke a key for good. Its costs stay.",
        example="KEY_ID",
        arguments="api_key_id",
        question="Revoke key {} for good?",
        words=_ONE_KEY,
    ),
)
"""Requests with the key fail from then on. Its costs stay."""
