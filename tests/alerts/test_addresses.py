"""No alert reaches an address inside private networks, unless the operator allows it."""

import asyncio
import ssl
from ipaddress import ip_network
from pathlib import Path
from threading import Event

import pytest

from tests.alerts.receiver import Receiver, running_receiver
from tests.support.certificates import make_certificates
from tollhouse.alerts import rules
from tollhouse.alerts.errors import AlertDestinationRefused
from tollhouse.alerts.types import DeliveryAttempt
from tollhouse.alerts.webhook import RESOLVING_PER_ORGANIZATION_MAX, WebhookClient
from tollhouse.base.ids import OrganizationId, time_ordered_uuid

PRIVATE = (
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
    *("192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.1"),
    *("198.18.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("192.0.2.1", "198.51.100.1", "203.0.113.1", "0.1.2.3", "10.255.255.255", "172.20.1.1"),
    *("192.168.255.254", "169.254.0.1", "100.100.100.200", "198.19.255.255"),
    *("::ffff:192.168.0.1", "64:ff9b::c0a8:1"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:100.64.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a00:1::"),
    *("2001:0:7f00:1:0:0:80ff:fffe", "2001:db8::1", "100::1", "::7f00:1"),
)
PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111"),
    # What an IPv6-only host with DNS64 is told of a receiver that has only IPv4.
    "64:ff9b::808:808",
)
SPELLINGS = (
    *("127.1", "0", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "localhost"),
    *("[::1]", "[::ffff:127.0.0.1]", "[::]", "[64:ff9b::7f00:1]"),
)
"""Loopback, as resolvers understand it."""
REFUSED_URLS = (
    "http://receiver.example/",
    "https:///path",
    "https://user:password@receiver.example/",
    "https://user@receiver.example/",
    "https://receiver.example:99999/",
    "https://receiver.example:port/",
    "https://[::1/",
    "https://receiver.example/ x",
    "https://receiver.example/\r\nx: y",
    "https://réceiver.example/",
    "ftp://receiver.example/",
    "receiver.example",
)


@pytest.mark.guarantee("T33")
def test_60_addresses_or_more_are_refused() -> None:
    assert len({*PRIVATE, *SPELLINGS}) >= 60


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not rules.is_public(address)
    assert not rules.is_allowed(address, ())


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert rules.is_public(address)


def test_the_operator_allows_networks_also_in_their_mapped_form() -> None:
    networks = (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))

    assert rules.is_allowed("10.1.2.3", networks)
    assert rules.is_allowed("::ffff:10.1.2.3", networks)
    assert rules.is_allowed("fd00::1", networks)
    assert not rules.is_allowed("10.2.0.1", networks)


async def _post(
    url: str, *, networks: tuple[str, ...] = (), tls: ssl.SSLContext | None = None
) -> DeliveryAttempt:
    client = WebhookClient(
        seconds=60,
        networks=tuple(map(ip_network, networks)),
        tls=tls or ssl.create_default_context(),
    )
    return await client.post(OrganizationId(time_ordered_uuid()), url, {}, b"{}")


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize("host", SPELLINGS)
async def test_no_spelling_of_loopback_is_connected_to(host: str) -> None:
    async with running_receiver() as receiver:
        for scheme in ("http", "https"):
            attempt = await _post(f"{scheme}://{host}:{receiver.port}/")
            assert attempt.error is not None
            assert "connection failed" not in attempt.error

    assert receiver.received == []


@pytest.mark.guarantee("T33")
async def test_a_name_that_changes_its_address_is_connected_to_where_it_was_checked() -> None:
    """Each delivery asks the name server once, and connects to what it answered."""
    answers = ["127.0.0.1", "127.0.0.2"]

    def look_up(*_: object, **__: object) -> list[object]:
        return [(None, None, None, "", (answers.pop(0), 0))]

    async with running_receiver() as receiver:
        client = WebhookClient(
            seconds=60,
            networks=(ip_network("127.0.0.1/32"),),
            tls=ssl.create_default_context(),
            look_up=look_up,
        )
        owner, url = OrganizationId(time_ordered_uuid()), f"http://a.example:{receiver.port}/"
        first = await client.post(owner, url, {}, b"{}")
        second = await client.post(owner, url, {}, b"{}")

    assert first.is_delivered
    assert "not public" in str(second.error)
    assert len(receiver.received) == 1


@pytest.mark.guarantee("T33")
async def test_plain_http_stays_inside_of_allowed_networks() -> None:
    async with running_receiver() as receiver:
        allowed = await _post(receiver.url, networks=("127.0.0.0/8",))
        refused = await _post("http://1.1.1.1/", networks=("127.0.0.0/8",))

    assert allowed.is_delivered
    assert refused.error is not None
    assert "not public" in refused.error


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize(
    "addresses", [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")], ids=" ".join
)
async def test_a_host_with_one_private_address_among_several_is_refused(
    addresses: tuple[str, str],
) -> None:
    """The network of the first is allowed, that of the second is not, in whatever order."""

    def look_up(*_: object, **__: object) -> list[object]:
        return [(None, None, None, "", (address, 0)) for address in addresses]

    async with running_receiver() as receiver:
        client = WebhookClient(
            seconds=60,
            networks=(ip_network("127.0.0.1/32"),),
            tls=ssl.create_default_context(),
            look_up=look_up,
        )
        attempt = await client.post(
            OrganizationId(time_ordered_uuid()), f"http://a.example:{receiver.port}/", {}, b"{}"
        )

    assert attempt.error is not None
    assert "not public" in attempt.error
    assert receiver.received == []


async def test_the_certificate_must_be_of_the_host_and_of_a_trusted_authority(
    tmp_path: Path,
) -> None:
    certificates = make_certificates(tmp_path)
    receiver = Receiver()
    context = certificates.server_context()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    unnamed = await asyncio.start_server(receiver.serve, "127.0.0.2", port, ssl=context)
    trusting = ssl.create_default_context(cafile=str(certificates.authority))

    url, networks = f"https://localhost:{port}/", ("127.0.0.0/8", "::1/128")
    trusted = await _post(url, networks=networks, tls=trusting)
    untrusted = await _post(url, networks=networks)
    other_name = await _post(f"https://127.0.0.2:{port}/", networks=networks, tls=trusting)
    server.close()
    unnamed.close()

    assert trusted.is_delivered
    assert untrusted.error == other_name.error == "TLS failed: CERTIFICATE_VERIFY_FAILED"
    assert len(receiver.received) == 1


async def test_a_name_server_that_never_answers_holds_up_nothing_else() -> None:
    has_ended = Event()
    asked: list[str] = []

    def look_up(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        if host == "silent.example":
            has_ended.wait()
        return [(None, None, None, "", ("10.0.0.1", 443))]

    client = WebhookClient(
        seconds=0.2, networks=(), tls=ssl.create_default_context(), look_up=look_up
    )
    one, other = (OrganizationId(time_ordered_uuid()) for _ in range(2))
    try:
        silent = [client.post(one, "https://silent.example/", {}, b"{}") for _ in range(50)]
        attempts = await asyncio.gather(*silent)
        more = await client.post(one, "https://silent.example/", {}, b"{}")
        neighbour = await client.post(other, "https://private.example/", {}, b"{}")
        await asyncio.get_running_loop().getaddrinfo("localhost", 1)
    finally:
        has_ended.set()

    assert not any(attempt.is_delivered for attempt in attempts)
    assert more.error == "no answer within 0.2 s"
    assert neighbour.error is not None
    assert "not public" in neighbour.error
    assert asked.count("silent.example") == RESOLVING_PER_ORGANIZATION_MAX


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize("url", REFUSED_URLS)
def test_a_url_that_can_never_work_is_refused_at_once(url: str) -> None:
    with pytest.raises(AlertDestinationRefused):
        rules.check_url(url, ())


async def test_deliveries_of_one_organization_wait_for_their_turn_to_resolve() -> None:
    """The first names are resolved only when as many are asked for as may be at a time."""
    asked: list[str] = []
    are_all_asked = Event()

    def look_up(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        if len(asked) == RESOLVING_PER_ORGANIZATION_MAX:
            are_all_asked.set()
        are_all_asked.wait()
        return [(None, None, None, "", ("10.0.0.1", 443))]

    client = WebhookClient(
        seconds=60, networks=(), tls=ssl.create_default_context(), look_up=look_up
    )
    owner = OrganizationId(time_ordered_uuid())
    posts = [client.post(owner, "https://a.example/", {}, b"{}") for _ in range(8)]

    attempts = await asyncio.gather(*posts)

    assert ["not public" in str(attempt.error) for attempt in attempts] == [True] * 8
