"""Shows operators what `parley replay` has kept: the replays of each domain, the turns that came out otherwise."""

import asyncio

from fastapi import APIRouter

from gateway.dependencies import TheOperations
from gateway.inspector.evaluations import Name, list_kept, read_kept
from gateway.responses.common import documented
from gateway.responses.operations import Replay, WholeReplay
from orchestrator.errors import NotFound
from orchestrator.types import JsonObject

router = APIRouter(prefix="/v1/replays", tags=["operate"])


@router.get("", responses=documented(list[Replay]))
async def list_replays(operations: TheOperations, domain: Name | None = None) -> list[JsonObject]:
    """List the latest replays, of one domain or of all, the newest first; none where this gateway knows no folder."""
    return await asyncio.to_thread(list_kept, operations.evaluations, f"{domain or '*'}/replays")


@router.get("/{domain}/{replay}", responses=documented(WholeReplay))
async def show_replay(domain: Name, replay: Name, operations: TheOperations) -> JsonObject:
    """Show a replay with the turns that came out otherwise: what was said, and what each aspect was and is now."""
    found = await asyncio.to_thread(read_kept, operations.evaluations, f"{domain}/replays", replay)
    if found is None:
        raise NotFound("replay", f"{domain}/{replay}")
    return found
