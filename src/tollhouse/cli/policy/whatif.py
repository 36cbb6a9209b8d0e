"""`tollhouse policy whatif`: the effect of other thresholds on stored scores."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.base.clock import unix_seconds
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.cli import output, session
from tollhouse.cli.arguments import POLICY, example, json_option, organization_option
from tollhouse.cli.policy.drafts import retrieve
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import THRESHOLD_BASIS_POINTS_MAX
from tollhouse.decisions import rules, service
from tollhouse.decisions.service import DAYS_MAX
from tollhouse.decisions.types import DailyTotal

DAYS_DEFAULT: Final = 30
STEPS: Final = tuple(range(500, 10_000, 500))
COLUMNS: Final = ("match_threshold_basis_points", "matches_min", "matches_max", "share")


NO_SCORES: Final = (
    "There are no scores, so the effect of a threshold is unknown. `tollhouse policy test` shows "
    "whether the judge answers."
)
NOTHING_JUDGED: Final = (
    "There are no scores, so the effect of a threshold is unknown: this version judged nothing. "
    "`tollhouse policy effective PROJECT_ID` shows whether it applies to a project."
)


class NeverPublished(GatewayError):
    """The policy has no published version, so nothing was judged by it."""

    kind = Kind.CONFLICT
    code = "policy_never_published"
    template = "The policy was never published, so it has no scores. Publish it first."


class WouldMatch(Struct, frozen=True, kw_only=True):
    """Bounds of the matches at a threshold; scores are stored in steps of one percent."""

    match_threshold_basis_points: int
    matches_min: int
    matches_max: int
    share: str


class WhatIf(Struct, frozen=True, kw_only=True):
    """The scores of the published version, and the matches that other thresholds would give.

    `failures` are the contents for which the judge gave no usable answer.
    """

    object: Literal["policy.what_if"] = "policy.what_if"
    policy_id: str
    version: int
    days: int
    scored: int
    failures: int
    data: list[WouldMatch]


@click.command(epilog=example("tollhouse policy whatif POLICY_ID --threshold 7000"))
@click.argument("policy", type=POLICY)
@organization_option
@click.option(
    "--threshold",
    "thresholds",
    type=click.IntRange(1, THRESHOLD_BASIS_POINTS_MAX),
    multiple=True,
    help="Can be given several times. When left out, 500, 1000, ... 9500.",
)
@click.option(
    "--days", type=click.IntRange(1, DAYS_MAX - 1), default=DAYS_DEFAULT, help="Days of traffic."
)
@json_option
@click.pass_obj
def whatif(
    settings_path: Path,
    *,
    policy: PolicyId,
    organization: UUID | None,
    thresholds: tuple[int, ...],
    days: int,
    as_json: bool,
) -> None:
    """Count what other thresholds would have matched in recent traffic."""

    async def read(operator: Session) -> tuple[int, list[DailyTotal]]:
        owner = await operator.organization(organization)
        found = await retrieve(operator, owner.id, policy)
        if found.published is None:
            raise NeverPublished
        now = operator.clock.now()
        span = service.days(unix_seconds(now - timedelta(days=days)), None, now=now)
        async with operator.database.transaction() as tx:
            tallies = await service.tallies(tx, owner.id, policy, span)
        number = found.published.number
        return number, [tally for tally in tallies if tally.version == number]

    version, tallies = session.run(settings_path, read)
    counts = rules.summed(tallies)
    result = WhatIf(
        policy_id=policy_id_text(policy),
        version=version,
        days=days,
        scored=sum(counts),
        failures=sum(tally.outcomes[EvaluationOutcome.FAILED] for tally in tallies),
        data=[_would_match(counts, threshold) for threshold in thresholds or STEPS],
    )
    if as_json:
        output.show(result, as_json=True)
    else:
        _show(result)


def _show(found: WhatIf) -> None:
    """Print the table, or why there is none: zeros would be misleading without scores."""
    counts = f"{found.scored} scores and {found.failures} failures in {found.days} days"
    output.say(f"Version {found.version}: {counts}.", as_json=False)
    if found.scored:
        output.show_list(found, COLUMNS, as_json=False)
    else:
        output.say(NO_SCORES if found.failures else NOTHING_JUDGED, as_json=False)


def _would_match(counts: Sequence[int], threshold: int) -> WouldMatch:
    lowest, highest = rules.matched(counts, threshold_basis_points=threshold)
    scored = sum(counts)
    return WouldMatch(
        match_threshold_basis_points=threshold,
        matches_min=lowest,
        matches_max=highest,
        share="-" if not scored else f"{100 * highest / scored:.1f} %",
    )
