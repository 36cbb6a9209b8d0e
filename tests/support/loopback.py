"""Small servers of aiohttp that tests write for themselves, on a free port of loopback."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BODY_BYTES_MAX = 64 * 1024 * 1024


@asynccontextmanager
async def serving(posts: Mapping[str, Handler]) -> AsyncGenerator[str]:
    """The origin of a server that has these handlers by path.

    A caller who leaves cancels his handler, and whoever still waits at the end is cut off.
    """
    application = web.Application(client_max_size=BODY_BYTES_MAX)
    for path, handler in posts.items():
        application.router.add_post(path, handler)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
