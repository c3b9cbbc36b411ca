"""The AG-UI endpoint. The protocol's types are imported when the first run arrives."""

from typing import Annotated, Any

from fastapi import APIRouter, Body
from sse_starlette import EventSourceResponse

from gateway.dependencies import TheCaller, TheDependencies

router = APIRouter(prefix="/v1", tags=["agui"])


@router.post("/agui", include_in_schema=False)
async def run_agent(
    body: Annotated[dict[str, Any], Body()], dependencies: TheDependencies, caller: TheCaller
) -> EventSourceResponse:
    """Submit the last user message, or the answers to interrupts, and stream the run's events.

    The thread is a session, which is created if it doesn't exist. A repeated run isn't executed again.
    """
    from gateway.routes.agui_runs import start_run  # noqa: PLC0415  # rarely needed, and takes 0.06 s at startup

    return await start_run(body, dependencies, caller)
