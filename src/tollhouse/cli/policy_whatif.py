"""`tollhouse policy whatif`: another threshold on what was judged, without the texts."""

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
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.policy_arguments import POLICY
from tollhouse.cli.policy_trying import retrieve
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import THRESHOLD_BASIS_POINTS_MAX
from tollhouse.decisions import rules, service
from tollhouse.decisions.service import DAYS_MAX
from tollhouse.decisions.types import Outcome, Tally

DAYS_DEFAULT: Final = 30
STEPS: Final = tuple(range(500, 10_000, 500))
COLUMNS: Final = ("match_threshold_basis_points", "matches_min", "matches_max", "share")


NO_SCORES: Final = (
    "Without scores nothing can be told of any threshold. `tollhouse policy test` shows whether "
    "the judge answers."
)
NOTHING_JUDGED: Final = (
    "Without scores nothing can be told of any threshold: nothing was judged by this version. "
    "`tollhouse policy effective PROJECT_ID` shows whether it applies to a project."
)


class NeverPublished(GatewayError):
    """Only what is in force is judged."""

    kind = Kind.CONFLICT
    code = "policy_never_published"

    def __init__(self) -> None:
        super().__init__("The policy was never published, so that nothing was judged by it.")


class WouldMatch(Struct, frozen=True, kw_only=True):
    """Scores are kept by the hundredth, so that between two of them only bounds are known."""

    match_threshold_basis_points: int
    matches_min: int
    matches_max: int
    share: str


class WhatIf(Struct, frozen=True, kw_only=True):
    """What the version in force has scored, and what other thresholds would have made of it.

    `failures` are the contents for which the judge had no answer that counts.
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
    help="May be given several times. When left out, a whole scale is shown.",
)
@click.option("--days", type=click.IntRange(1, DAYS_MAX - 1), default=DAYS_DEFAULT)
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
    """Count what other thresholds would have matched of the last days' traffic."""

    async def read(operator: Session) -> tuple[int, list[Tally]]:
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
        failures=sum(tally.outcomes[Outcome.FAILED] for tally in tallies),
        data=[_would_match(counts, threshold) for threshold in thresholds or STEPS],
    )
    if as_json:
        output.show(result, as_json=True)
    else:
        _show(result)


def _show(found: WhatIf) -> None:
    """Where nothing can be told, no table of zeros pretends that it could."""
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
