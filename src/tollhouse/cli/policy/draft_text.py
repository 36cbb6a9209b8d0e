"""A policy as TOML text to edit, with all its fields, and back."""

import tomllib
from typing import Final

import msgspec

from tollhouse.base.errors import InvalidRequest
from tollhouse.base.ids import policy_id_text
from tollhouse.cli.output import JsonValue
from tollhouse.contract.bounds import (
    POLICY_DESCRIPTION_LENGTH_MAX,
    POLICY_NAME_LENGTH_MAX,
    POLICY_PROJECTS_MAX,
    POLICY_RULE_LENGTH_MAX,
    THRESHOLD_BASIS_POINTS_MAX,
)
from tollhouse.contract.policies import CreatePolicy
from tollhouse.policies.types import Policy, PolicyContent

Fields = dict[str, JsonValue]


class NewDraft(CreatePolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A draft with all its fields; `/v1` accepts some of them."""

    ends_answer_early: bool = False


THRESHOLD: Final = "match_threshold_basis_points"

NEW: Final = "# A new policy. It applies after it is published."
EXISTING: Final = "# The draft of {id}, revision {revision}. Publish it to apply it."
FORM: Final = f"""\
{{heading}}
# Save this file and close the editor to continue. Close it without a change to cancel.

# 1 to {POLICY_NAME_LENGTH_MAX} characters on one line.
name = {{name}}

# For your colleagues; at most {POLICY_DESCRIPTION_LENGTH_MAX} characters.
description = {{description}}

# A yes-or-no question about the text, ending with a question mark; "yes" is a match.
# At most {POLICY_RULE_LENGTH_MAX} characters, on as many lines as you like.
rule = \"\"\"
{{rule}}
\"\"\"

# What is judged: "request", "response" or "both".
direction = {{direction}}

# What a match does: "monitoring" records it, "enforcing" refuses the request.
mode = {{mode}}

# Which requests it applies to: all of the "organization", all of the "projects" listed below,
# or with "unattached" only those that name it in `policy_ids`.
scope = {{scope}}

# IDs of projects, at most {POLICY_PROJECTS_MAX}; used only with the scope "projects".
project_ids = {{project_ids}}

# Whether a match in the beginning of an answer ends the answer. Do not use it for a question about
# something missing: it is missing from every beginning. Only for direction "response" or "both".
ends_answer_early = {{ends_answer_early}}

# The lowest score that is a match, in hundredths of a percent, 1 to {THRESHOLD_BASIS_POINTS_MAX}.
# Without this line, the deployment's default at publication applies.
{{threshold}}
"""
THRESHOLD_LINE: Final = f"{THRESHOLD} = {{}}"
NO_THRESHOLD_LINE: Final = f"# {THRESHOLD_LINE}"
EXAMPLE_THRESHOLD: Final = 5000


def new_form(given: Fields) -> str:
    """Return the text of a new policy, with defaults for fields that are not given."""
    blank = NewDraft(name="", rule="")
    return _form(NEW, {**msgspec.to_builtins(blank), **given})


def draft_form(policy: Policy) -> str:
    """Return the text of a policy's draft."""
    heading = EXISTING.format(id=policy_id_text(policy.id), revision=policy.revision)
    own: Fields = {"name": policy.name, "description": policy.description}
    return _form(heading, {**own, **content_fields(policy.draft)})


def content_fields(content: PolicyContent) -> Fields:
    """Return the content under the field names of the API."""
    return msgspec.json.decode(msgspec.json.encode(content))


def read(text: str) -> Fields:
    """Parse the text. Raises `InvalidRequest` if it is not TOML; fields are not checked."""
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"The text is not valid TOML: {error}."
        raise InvalidRequest("invalid_value", message) from None
    if isinstance(rule := fields.get("rule"), str):
        # The form has the closing quotes on a line of their own, and a rule ends with "?".
        fields["rule"] = rule.rstrip("\n")
    return {THRESHOLD: None, **fields}


def _form(heading: str, fields: Fields) -> str:
    threshold = fields[THRESHOLD]
    return FORM.format(
        heading=heading,
        name=_quoted(fields["name"]),
        description=_quoted(fields["description"]),
        rule=_unquoted_lines(str(fields["rule"])),
        direction=_quoted(fields["direction"]),
        mode=_quoted(fields["mode"]),
        scope=_quoted(fields["scope"]),
        project_ids=_quoted(fields["project_ids"]).replace(",", ",\n    "),
        ends_answer_early=_quoted(fields["ends_answer_early"]),
        threshold=(
            NO_THRESHOLD_LINE.format(EXAMPLE_THRESHOLD)
            if threshold is None
            else THRESHOLD_LINE.format(threshold)
        ),
    )


def _quoted(value: JsonValue) -> str:
    """Return the value as TOML, which JSON is too but for the character DEL."""
    return msgspec.json.encode(value).decode().replace("\x7f", r"\u007f")


def _unquoted_lines(text: str) -> str:
    """Return the inside of a multi-line string, where single quotes need no escape."""
    lines = (_quoted(line)[1:-1].replace(r"\"", '"') for line in text.split("\n"))
    return "\n".join(lines).replace('"""', '""\\"')
