"""Results of `parley replay`, for operators."""

import asyncio

from fastapi import APIRouter

from gateway.dependencies import TheOperations, TheTenant
from gateway.inspector.evaluations import Name, list_kept, read_kept
from gateway.responses.common import documented
from gateway.responses.operations import Replay, WholeReplay
from orchestrator.errors import NotFound
from orchestrator.types import JsonObject

router = APIRouter(prefix="/v1/replays", tags=["operate"])


@router.get("", responses=documented(list[Replay]))
async def list_replays(
    operations: TheOperations, tenant: TheTenant, domain: Name | None = None
) -> list[JsonObject]:
    """List the latest replays of one or all domains, newest first."""
    return await asyncio.to_thread(list_kept, operations.evaluations, f"{domain or '*'}/replays", tenant)


@router.get("/{domain}/{replay}", responses=documented(WholeReplay))
async def show_replay(domain: Name, replay: Name, operations: TheOperations, tenant: TheTenant) -> JsonObject:
    """Return a replay with the turns that differ: the message, and each aspect before and after."""
    found = await asyncio.to_thread(read_kept, operations.evaluations, f"{domain}/replays", replay, tenant)
    if found is None:
        raise NotFound("replay", f"{domain}/{replay}")
    return found
