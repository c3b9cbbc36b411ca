"""Serves the inspector: its page, its files, the chart script, and the few facts it needs to begin."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path
from typing import override

from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from gateway.doors import TheDoors, TheTenant
from gateway.inspector.charts import make_chart_script
from gateway.inspector.headers import HEADERS
from orchestrator.types import JsonObject

STATIC = Path(str(files("gateway.inspector"))) / "static"

router = APIRouter()


class GuardedFiles(StaticFiles):
    """Files with the headers of the inspector."""

    @override
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


@router.get("/", include_in_schema=False)
async def show_page() -> FileResponse:
    return FileResponse(STATIC / "index.html", headers=dict(HEADERS))


@router.get("/inspector/charts.js", include_in_schema=False)
async def read_chart_script(request: Request) -> Response:
    """What draws charts; made once per process."""
    script = await to_thread.run_sync(make_chart_script)
    headers = {**HEADERS, "ETag": script.tag, "Vary": "Accept-Encoding"}
    if script.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    media_type = "text/javascript; charset=utf-8"
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(script.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=media_type)
    return Response(gzip.decompress(script.compressed), headers=headers, media_type=media_type)


@router.get("/v1/inspector", tags=["operate"])
async def read_inspector_facts(doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """What the inspector offers: domains for new sessions, and where Flower answers, if it does."""
    return {
        "tenant_id": tenant,
        "domains": doors.domains.names(),
        "default_domain": doors.domains.resolve(None),
        "flower_url": doors.flower_url,
    }


def install(app: FastAPI) -> None:
    """Add the page at `/` and its files below `/inspector/`."""
    app.include_router(router)
    app.mount("/inspector", GuardedFiles(directory=STATIC), name="inspector")
