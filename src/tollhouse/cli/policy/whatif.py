"""`tollhouse policy whatif`: the effect of other thresholds on stored scores."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse.base.clock import unix_seconds
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.verbs import gateways, references
from tollhouse.cli.verbs.gateway import OperationRequest
from tollhouse.contract.bounds import THRESHOLD_BASIS_POINTS_MAX
from tollhouse.contract.policy_operations import REPORT_POLICY, RETRIEVE_MANAGED_POLICY
from tollhouse.decisions import rules
from tollhouse.decisions.service import DAYS_MAX

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


@click.command(epilog=example('tollhouse policy whatif "No names" --threshold 7000'))
@click.argument("policy")
@click.option("--org", "organization", help="The organization, by name or ID, on a host.")
@click.option("--profile", envvar="TOLLHOUSE_PROFILE", help="A profile of `tollhouse login`.")
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
    policy: str,
    organization: str | None,
    profile: str | None,
    thresholds: tuple[int, ...],
    days: int,
    as_json: bool,
) -> None:
    """Count what other thresholds would have matched in recent traffic."""
    gateway = gateways.chosen(
        REPORT_POLICY, settings_path, profile=profile, organization=organization
    )
    with gateway:
        path = {"policy_id": references.resolved(gateway, "policy", policy)}
        found, _ = gateway.call(RETRIEVE_MANAGED_POLICY, OperationRequest(path=path))
        if found["published"] is None:
            raise NeverPublished
        begin = unix_seconds(gateway.now() - timedelta(days=days))
        request = OperationRequest(path=path, query={"start_time": begin})
        page, _ = gateway.call(REPORT_POLICY, request)
    version: int = found["published"]["version"]
    rows = [row for row in page["data"] if row["version"] == version]
    counts = [sum(places) for places in zip(*(row["score_counts"] for row in rows), strict=True)]
    result = WhatIf(
        policy_id=found["id"],
        version=version,
        days=days,
        scored=sum(counts),
        failures=sum(row["failures"] for row in rows),
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
