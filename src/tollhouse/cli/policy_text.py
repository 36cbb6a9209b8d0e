"""A policy as a text to edit, and back. The text is TOML, and whoever edits it sees all fields."""

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
    """All that a draft can say, of which `/v1` takes a part."""

    ends_answer_early: bool = False


THRESHOLD: Final = "match_threshold_basis_points"

NEW: Final = "# A new policy. Nothing applies before it is published."
EXISTING: Final = (
    "# The draft of {id}, revision {revision}. What is published stays until you publish again."
)
FORM: Final = f"""\
{{heading}}
# Save this file and leave the editor to go on; leave it unchanged to stop.

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

# Where it applies by itself: in the whole "organization", in the "projects" listed below,
# or, "unattached", only in requests that ask for it.
scope = {{scope}}

# IDs of projects, at most {POLICY_PROJECTS_MAX}; used only with the scope "projects".
project_ids = {{project_ids}}

# Whether a match in the part of an answer that is there ends the answer. Never for a question
# about what is absent, which is absent from every beginning. Only where answers are judged.
ends_answer_early = {{ends_answer_early}}

# The score from which an answer is a match, in hundredths of a percent,
# 1 to {THRESHOLD_BASIS_POINTS_MAX}. Without this line, the deployment's default at publication.
{{threshold}}
"""
THRESHOLD_LINE: Final = f"{THRESHOLD} = {{}}"
NO_THRESHOLD_LINE: Final = f"# {THRESHOLD_LINE}"
EXAMPLE_THRESHOLD: Final = 5000


def new_form(given: Fields) -> str:
    """To be filled in; what is not given yet has its default."""
    blank = NewDraft(name="", rule="")
    return _form(NEW, {**msgspec.to_builtins(blank), **given})


def draft_form(policy: Policy) -> str:
    """All that can be edited, as it is."""
    heading = EXISTING.format(id=policy_id_text(policy.id), revision=policy.revision)
    own: Fields = {"name": policy.name, "description": policy.description}
    return _form(heading, {**own, **content_fields(policy.draft)})


def content_fields(content: PolicyContent) -> Fields:
    """What is drafted or published, under the names that the API has."""
    return msgspec.json.decode(msgspec.json.encode(content))


def read(text: str) -> Fields:
    """What the text says, of which nothing is checked yet but that it is TOML."""
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"The text is not valid TOML: {error}."
        raise InvalidRequest("invalid_value", message) from None
    if isinstance(rule := fields.get("rule"), str):
        # The form puts the closing quotes on a line of their own, and a rule ends with "?".
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
    """JSON's strings and lists are TOML's, but for one character."""
    return msgspec.json.encode(value).decode().replace("\x7f", r"\u007f")


def _unquoted_lines(text: str) -> str:
    """The inside of a string in three quotes, in which single quotes can stay as they are."""
    lines = (_quoted(line)[1:-1].replace(r"\"", '"') for line in text.split("\n"))
    return "\n".join(lines).replace('"""', '""\\"')
