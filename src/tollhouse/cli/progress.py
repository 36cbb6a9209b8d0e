"""Progress bars for what may take longer than a second."""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def bars(*, as_json: bool) -> Generator[Progress, None, None]:
    """A place for them, on standard error while somebody is looking."""
    console = Console(stderr=True)
    is_watched = console.is_terminal and not as_json
    with Progress(console=console, transient=True, disable=not is_watched) as shown:
        yield shown
