"""Arguments of the verbs on policies, and the bodies that they amount to."""

from typing import Any, Final, TypeVar, get_args
from uuid import UUID

import click
import msgspec
from msgspec import Struct

from tollhouse.api import parameters
from tollhouse.base.errors import InvalidRequest
from tollhouse.base.ids import PolicyId, parse_policy_id
from tollhouse.cli.arguments import IDENTIFIER, F
from tollhouse.cli.policy_text import THRESHOLD, Fields
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
        """The form that the API has."""
        if isinstance(value, UUID):
            return value
        if (parsed := parse_policy_id(value)) is None:
            self.fail(f"It is not a policy's ID, which looks like {EXAMPLE_POLICY_ID}.", param, ctx)
        return parsed


class _Threshold(click.ParamType["int | str"]):
    name = "threshold"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """A number, or the word for the deployment's own."""
        if value == DEFAULT:
            return DEFAULT
        return click.IntRange(1, THRESHOLD_BASIS_POINTS_MAX)(value, param, ctx)


POLICY: Final = _PolicyIdentifier()
REVISION: Final = click.IntRange(1, REVISION_MAX)


def revision_option(verb: F) -> F:
    """Give the verb `revision`, a number or nothing."""
    return click.option(
        "--revision",
        type=REVISION,
        help="Refuse if the policy has another one. When left out, the latest is meant.",
    )(verb)


def content_options(verb: F) -> F:
    """Give the verb all that a policy says, under the names of its fields."""
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
            help="Where it applies by itself.",
        ),
        click.option(
            "--project",
            "project_ids",
            type=IDENTIFIER,
            multiple=True,
            help="For the scope `projects`. May be given several times.",
        ),
        click.option(
            "--match-threshold-basis-points",
            type=_Threshold(),
            metavar=f"[1-{THRESHOLD_BASIS_POINTS_MAX}|{DEFAULT}]",
            help="The score from which an answer is a match.",
        ),
        click.option(
            "--end-early/--no-end-early",
            "ends_answer_early",
            default=None,
            help="Whether a match in a part of an answer ends it.",
        ),
    )
    for option in reversed(options):
        verb = option(verb)
    return verb


def given_fields(options: dict[str, Option]) -> Fields:
    """The options that were given, as the fields of a body."""
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
    """As the API would judge them."""
    try:
        encoded = msgspec.json.encode(fields)
    except UnicodeEncodeError:
        raise InvalidRequest("invalid_value", "A text is not valid UTF-8.") from None
    return decode(screen(encoded), body)


def noun(body: Struct, type_: type[NounT]) -> NounT:
    """A checked body as what the service takes; what was left out stays left out."""
    fields: dict[str, Any] = msgspec.to_builtins(body)
    if "project_ids" in fields:
        fields["project_ids"] = parameters.project_ids(fields["project_ids"])
    return msgspec.convert(fields, type_)
