"""List the real services that a domain's tools call, and load the function that resets them."""

import inspect
import runpy
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.domain.model import Domain, Implementation, ToolSpec
from orchestrator.errors import InvalidInput

RESET = "evaluations/reset.py"
"""Path of the file that defines a domain's `reset` function, relative to the domain's folder."""

Reset = Callable[[], Awaitable[None]]


def read_reset(folder: str | Path) -> Reset | None:
    """Return the `reset` function from a domain's `evaluations/reset.py`, or None if the file does not exist.

    The file's function can be asynchronous. Raises InvalidInput if the file does not define the function.
    """
    path = Path(folder) / RESET
    if not path.exists():
        return None
    try:
        found = runpy.run_path(str(path)).get("reset")
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{RESET} cannot be run: {type(error).__name__}: {error}", field="target"
        ) from error
    if not callable(found):
        raise InvalidInput(f"{RESET} must define a function `reset`.", field="target")

    async def reset() -> None:
        ended = found()
        if inspect.isawaitable(ended):
            await ended

    return reset


def list_services(domain: Domain) -> Iterator[str]:
    """Yield a message if tools call real services, and another if the domain has no `reset` function for them."""
    servers = sorted({_server(tool) for tool in domain.tools.values() if tool.implementation in _REMOTE})
    if servers:
        yield f"Conversations call real services: {', '.join(servers)}."
        if not (Path(domain.folder) / RESET).exists():
            yield f"The services' data persists across conversations; a function `reset` in {RESET} can clear it."


_REMOTE = frozenset({Implementation.HTTP, Implementation.MCP})


def _server(tool: ToolSpec) -> str:
    """Return the host of a tool's URL, or the command that starts its server."""
    url = tool.target if tool.implementation is Implementation.HTTP else tool.options.get("url")
    return urlsplit(url).netloc if url else " ".join(tool.options.get("command") or ())
