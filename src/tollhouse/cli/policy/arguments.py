"""Arguments of the policy commands, and their conversion to request bodies."""

from typing import Any, Final, TypeVar, get_args
from uuid import UUID

import click
import msgspec
from msgspec import Struct

from tollhouse.api import parameters
from tollhouse.base.errors import InvalidRequest
from tollhouse.base.ids import PolicyId, parse_policy_id
from tollhouse.cli.arguments import IDENTIFIER, F
from tollhouse.cli.policy.draft_text import THRESHOLD, Fields
from tollhouse.contract.bounds import REVISION_MAX, THRESHOLD_BASIS_POINTS_MAX
from tollhouse.contract.decoding import decode, screen
from tollhouse.contract.policies import PolicyDirection, PolicyMode, PolicyScope

EXAMPLE_POLICY_ID: Final = "pol_01890a5dac96774bbcceb302099a8057"
DEFAULT: Final = "default"

Option = str | int | bool | tuple[UUID, ...] | None
BodyT = TypeVar("BodyT", bound=Struct)
NounT = TypeVar("NounT")


class _PolicyIdentifier(click.ParamType[PolicyId]):
    name = "policy"

    def convert(
        self, value: str | PolicyId, param: click.Parameter | None, ctx: click.Context | None
    ) -> PolicyId:
        """Return the ID. Only the form of the API is accepted."""
        if isinstance(value, UUID):
            return value
        if (parsed := parse_policy_id(value)) is None:
            self.fail(
                f"{value!r} is not a policy's ID. IDs look like {EXAMPLE_POLICY_ID}.", param, ctx
            )
        return parsed


class _Threshold(click.ParamType["int | str"]):
    name = "threshold"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number, or "default" for the deployment's threshold."""
        if value == DEFAULT:
            return DEFAULT
        return click.IntRange(1, THRESHOLD_BASIS_POINTS_MAX)(value, param, ctx)


POLICY: Final = _PolicyIdentifier()
REVISION: Final = click.IntRange(1, REVISION_MAX)


def revision_option(command: F) -> F:
    """Add the option `revision`: a number or None."""
    return click.option(
        "--revision",
        type=REVISION,
        help="Refuse if the policy has another revision. When left out, the latest.",
    )(command)


def content_options(command: F) -> F:
    """Add an option for each field of a policy."""
    options = (
        click.option("--description", help="For your colleagues."),
        click.option("--rule", help="A yes-or-no question that ends with a question mark."),
        click.option(
            "--direction", type=click.Choice(get_args(PolicyDirection)), help="What is judged."
        ),
        click.option("--mode", type=click.Choice(get_args(PolicyMode)), help="What a match does."),
        click.option(
            "--scope",
            type=click.Choice(get_args(PolicyScope)),
            help="Which requests it applies to.",
        ),
        click.option(
            "--project",
            "project_ids",
            type=IDENTIFIER,
            multiple=True,
            help="For the scope `projects`. Can be given several times.",
        ),
        click.option(
            "--match-threshold-basis-points",
            type=_Threshold(),
            metavar=f"[1-{THRESHOLD_BASIS_POINTS_MAX}|{DEFAULT}]",
            help="The lowest score that is a match.",
        ),
        click.option(
            "--end-early/--no-end-early",
            "ends_answer_early",
            default=None,
            help="Whether a match in the beginning of an answer ends the answer.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def given_fields(options: dict[str, Option]) -> Fields:
    """Return the options that were given as fields of a body."""
    fields: Fields = {}
    for name, value in options.items():
        if isinstance(value, tuple):
            fields |= {name: [str(one) for one in value]} if value else {}
        elif value is not None:
            fields[name] = value
    if fields.get(THRESHOLD) == DEFAULT:
        fields[THRESHOLD] = None
    return fields


def checked(fields: Fields, body: type[BodyT]) -> BodyT:
    """Return the fields as a body. Raises `InvalidRequest` where the API would."""
    try:
        encoded = msgspec.json.encode(fields)
    except UnicodeEncodeError:
        raise InvalidRequest("invalid_value", "A text is not valid UTF-8.") from None
    return decode(screen(encoded), body)


def noun(body: Struct, type_: type[NounT]) -> NounT:
    """Convert a checked body to the service's type. Fields that were left out stay left out."""
    fields: dict[str, Any] = msgspec.to_builtins(body)
    if "project_ids" in fields:
        fields["project_ids"] = parameters.project_ids(fields["project_ids"])
    return msgspec.convert(fields, type_)
