"""Asking a replica how it is, once, for somebody who looks."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

from tollhouse.backends.transport import Transport
from tollhouse.backends.transport_errors import NotConnected, NotHttp, TransportError

WITHOUT_HEALTH_ROUTE: Final = frozenset({404, 405})
"""It answers, and more cannot be known: such a replica is judged by calls alone."""


async def probe(
    base_url: str, health_path: str, *, api_key: str | None, seconds: float
) -> str | None:
    """What is wrong with a replica, or nothing; `health_path` begins at its host."""
    host = urlsplit(base_url)
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    transport = Transport()
    try:
        async with asyncio.timeout(seconds):
            response = await transport.open(
                "GET",
                f"{host.scheme}://{host.netloc}{health_path}",
                headers=headers,
                body=None,
                # The bound above comes first, on connecting as on answering.
                connect_seconds=2 * seconds,
            )
            response.close()
    except TimeoutError:
        return f"does not answer within {seconds:g} s"
    except NotConnected:
        return "cannot be connected to"
    except NotHttp:
        return "does not answer in HTTP"
    except TransportError:
        return "closes the connection without an answer"
    finally:
        await transport.close()
    is_well = response.status // 100 == 2 or response.status in WITHOUT_HEALTH_ROUTE  # noqa: PLR2004
    return None if is_well else f"answers {response.status} to GET {health_path}"
