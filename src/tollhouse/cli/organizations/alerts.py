"""`tollhouse alerts`: who is told about caps, credit, policies, holds and backends."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypedDict, TypeVar, Unpack
from uuid import UUID

import click
import msgspec

from tollhouse.alerts import rules, service
from tollhouse.alerts.types import AlertSubscription, AlertThresholds
from tollhouse.api.wire import alerts as alerts_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import AlertSubscriptionId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    LISTED_MAX,
    NAME,
    USD,
    example,
    json_option,
    organization_option,
    yes_option,
)
from tollhouse.cli.session import Session
from tollhouse.contract.alerts import (
    OVERLAP_SECONDS_DEFAULT,
    AlertDeliveryList,
    AlertSubscriptionDeleted,
    AlertSubscriptionList,
)
from tollhouse.contract.bounds import (
    ALERT_COUNT_MAX,
    ALERT_EMAILS_MAX,
    ALERT_PERCENT_MAX,
    OVERLAP_SECONDS_MAX,
    AlertEmails,
)
from tollhouse.storage.sealing import Sealer

_ID: Final = "01890a5d-ac96-774b-bcce-b302099a8057"
COLUMNS: Final = ("id", "name", "url", "emails", "cap_percents", "credit_percents", "backend_down")
DELIVERY_COLUMNS: Final = ("id", "created_at", "text", "status", "attempts", "last_error")
PERCENT: Final = click.IntRange(1, ALERT_PERCENT_MAX)
COUNT: Final = click.IntRange(1, ALERT_COUNT_MAX)

F = TypeVar("F", bound=Callable[..., Any])


class _Given(TypedDict):
    url: str | None
    emails: tuple[str, ...]
    cap_percents: tuple[int, ...]
    credit_percents: tuple[int, ...]
    credit_below: PicoUsd | None
    policy_matches_per_hour: int | None
    unsettled_requests: int | None
    backend_down: bool


def _subscription_options(function: F) -> F:
    """Add the options of `_Given`."""
    for add in (
        click.option("--backend-down", is_flag=True, help="A backend without a replica."),
        click.option("--unsettled-requests", type=COUNT, help="Requests without a final cost."),
        click.option("--policy-matches-per-hour", type=COUNT, help="Matches of one policy."),
        click.option("--credit-below", type=USD, help="Credit that is left, in US dollars."),
        _percents("--credit-percent", "Share of the credit."),
        _percents("--cap-percent", "Share of a cap."),
        click.option("--email", "emails", multiple=True, help="Send e-mail to this address."),
        click.option("--url", help="Send signed webhooks to this URL."),
    ):
        function = add(function)
    return function


def _percents(name: str, about: str) -> Callable[[F], F]:
    variable = name.strip("-").replace("-", "_") + "s"
    return click.option(name, variable, multiple=True, type=PERCENT, help=about)


@click.group("alerts", epilog=example("tollhouse alerts list"))
def command() -> None:
    """Tell a URL or e-mail addresses about caps, credit, policies, holds and backends."""


@command.command(
    epilog=example("tollhouse alerts create finance --email a@b.example --cap-percent 80")
)
@click.argument("name", type=NAME)
@organization_option
@_subscription_options
@json_option
@click.pass_obj
def create(
    settings_path: Path,
    *,
    name: str,
    organization: UUID | None,
    as_json: bool,
    **given: Unpack[_Given],
) -> None:
    """Subscribe a URL or e-mail addresses to alerts. The secret of a URL is shown only now."""
    subscription_id = AlertSubscriptionId(time_ordered_uuid())

    async def make(operator: Session) -> tuple[AlertSubscription, str | None]:
        made = await _described(operator, organization, subscription_id, name, given)
        secret, sealed = None, None
        if made.url is not None:
            secret, sealed = await service.mint_secret(_sealer(operator), made.id)
        async with operator.creation(made.organization_id) as tx:
            await service.create(tx, made, sealed=sealed)
        return made, secret

    made, secret = session.run(settings_path, make)
    output.show(alerts_wire.subscription(made, secret=secret), as_json=as_json)
    if secret is not None:
        output.note(output.SHOWN_ONCE)


@command.command(
    epilog=example(f"tollhouse alerts edit {_ID} finance --email a@b.example --cap-percent 95")
)
@click.argument("subscription", type=IDENTIFIER)
@click.argument("name", type=NAME)
@organization_option
@_subscription_options
@json_option
@click.pass_obj
def edit(
    settings_path: Path,
    *,
    subscription: UUID,
    name: str,
    organization: UUID | None,
    as_json: bool,
    **given: Unpack[_Given],
) -> None:
    """Replace a subscription by what is given. Its secret stays."""

    async def change(operator: Session) -> AlertSubscription:
        subscription_id = AlertSubscriptionId(subscription)
        edited = await _described(operator, organization, subscription_id, name, given)
        async with operator.database.mutation(operator.authority(edited.organization_id)) as tx:
            return await service.edit(tx, edited, by_operator=True)

    edited = session.run(settings_path, change)
    output.show(alerts_wire.subscription(edited), as_json=as_json)


@command.command("list", epilog=example("tollhouse alerts list --json"))
@organization_option
@json_option
@click.pass_obj
def list_(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the subscriptions."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: service.page(tx, owner, after=None, limit=LISTED_MAX + 1),
    )
    page = wire.page(AlertSubscriptionList, found, LISTED_MAX, alerts_wire.subscription)
    output.show_list(page, COLUMNS, as_json=as_json)


@command.command(epilog=example("tollhouse alerts deliveries"))
@organization_option
@json_option
@click.pass_obj
def deliveries(settings_path: Path, *, organization: UUID | None, as_json: bool) -> None:
    """List the latest alerts and whether they were delivered, newest first."""
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: service.deliveries(tx, owner, after=None, limit=LISTED_MAX + 1),
    )
    page = wire.page(AlertDeliveryList, found, LISTED_MAX, alerts_wire.delivery)
    output.show_list(page, DELIVERY_COLUMNS, as_json=as_json)


@command.command(epilog=example(f"tollhouse alerts test {_ID}"))
@click.argument("subscription", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def test(
    settings_path: Path, *, subscription: UUID, organization: UUID | None, as_json: bool
) -> None:
    """Send a test alert, at most one each minute. A worker delivers it within seconds."""
    sent = session.change(
        settings_path,
        organization,
        lambda tx: service.send_test(tx, AlertSubscriptionId(subscription)),
    )
    output.show(alerts_wire.delivery(sent), as_json=as_json)


@command.command(epilog=example(f"tollhouse alerts retry {_ID}"))
@click.argument("subscription", type=IDENTIFIER)
@organization_option
@json_option
@click.pass_obj
def retry(
    settings_path: Path, *, subscription: UUID, organization: UUID | None, as_json: bool
) -> None:
    """Attempt the failed and withheld deliveries of a subscription again."""
    found = session.change(
        settings_path,
        organization,
        lambda tx: service.retry(tx, AlertSubscriptionId(subscription)),
    )
    output.show(alerts_wire.subscription(found), as_json=as_json)


@command.command("rotate-secret", epilog=example(f"tollhouse alerts rotate-secret {_ID}"))
@click.argument("subscription", type=IDENTIFIER)
@organization_option
@click.option(
    "--overlap-seconds",
    type=click.IntRange(0, OVERLAP_SECONDS_MAX),
    default=OVERLAP_SECONDS_DEFAULT,
    help="Sign with the previous secret as well for this long.",
)
@json_option
@click.pass_obj
def rotate_secret(
    settings_path: Path,
    *,
    subscription: UUID,
    organization: UUID | None,
    overlap_seconds: int,
    as_json: bool,
) -> None:
    """Replace the secret that signs webhooks."""
    subscription_id = AlertSubscriptionId(subscription)

    async def rotate(operator: Session) -> tuple[AlertSubscription, str]:
        owner = await operator.organization(organization)
        secret, sealed = await service.mint_secret(_sealer(operator), subscription_id)
        overlap = timedelta(seconds=overlap_seconds)
        async with operator.database.mutation(operator.authority(owner.id)) as tx:
            rotated = await service.rotate_secret(
                tx, subscription_id, sealed=sealed, overlap=overlap
            )
        return rotated, secret

    rotated, secret = session.run(settings_path, rotate)
    output.show(alerts_wire.subscription(rotated, secret=secret), as_json=as_json)
    output.note(output.SHOWN_ONCE)


@command.command(epilog=example(f"tollhouse alerts delete {_ID} --yes"))
@click.argument("subscription", type=IDENTIFIER)
@organization_option
@yes_option
@json_option
@click.pass_obj
def delete(
    settings_path: Path,
    *,
    subscription: UUID,
    organization: UUID | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete a subscription. Its pending alerts are not delivered."""
    output.confirm(f"Delete the subscription {subscription}?", yes=yes, as_json=as_json)
    session.change(
        settings_path,
        organization,
        lambda tx: service.delete(tx, AlertSubscriptionId(subscription)),
    )
    output.show(AlertSubscriptionDeleted(id=str(subscription), deleted=True), as_json=as_json)


async def _described(
    operator: Session,
    organization: UUID | None,
    subscription_id: AlertSubscriptionId,
    name: str,
    given: _Given,
) -> AlertSubscription:
    """Return what the options describe. Raises if it is incomplete or cannot be delivered."""
    thresholds = AlertThresholds(
        cap_percents=tuple(sorted(set(given["cap_percents"]))),
        credit_percents=tuple(sorted(set(given["credit_percents"]))),
        credit_below_pico_usd=given["credit_below"],
        policy_matches_per_hour=given["policy_matches_per_hour"],
        unsettled_requests=given["unsettled_requests"],
        backend_down=given["backend_down"],
    )
    url, emails = given["url"], given["emails"]
    try:
        msgspec.convert(list(emails), AlertEmails)
    except msgspec.ValidationError:
        message = f"--email takes up to {ALERT_EMAILS_MAX} addresses such as a@b.example."
        raise click.UsageError(message) from None
    if (url is None) == (not emails) or thresholds == AlertThresholds():
        message = "Give --url or --email, and at least one threshold such as --cap-percent 80."
        raise click.UsageError(message)
    settings = operator.settings.alerts
    if url is not None:
        rules.check_url(url, settings.networks())
    rules.check_emails(emails, settings.email_domains, sends_email=settings.smtp_host is not None)
    return AlertSubscription(
        organization_id=(await operator.organization(organization)).id,
        id=subscription_id,
        name=name,
        url=url,
        emails=emails,
        thresholds=thresholds,
        created_at=operator.clock.now(),
    )


def _sealer(operator: Session) -> Sealer:
    return Sealer(operator.database, operator.masters)
