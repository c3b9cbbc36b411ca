"""Serves the inspector: its page, its files, the chart script, and the few facts it needs to begin."""

import gzip
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from gateway.dependencies import TheCaller, TheOperations, TheSessions
from gateway.inspector import evaluations, repairs, replays
from gateway.inspector.charts import ChartScript
from gateway.responses.operations import InspectorFacts

STATIC = Path(str(files("gateway.inspector"))) / "static"

CONTENT_SECURITY_POLICY: Final = "; ".join(  # noqa: FLY002  # one directive a line
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No script may turn text into markup, except one that empties an element (scripts/trusted.js).
        "require-trusted-types-for 'script'",
        "trusted-types default",
    )
)

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    # Asked for again each time, and answered with 304 while nothing changed: an upgrade shows at once.
    "Cache-Control": "no-cache",
}

router = APIRouter()


class GuardedFiles(StaticFiles):
    """Files with the headers of the inspector."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


@router.get("/", include_in_schema=False)
async def show_page() -> FileResponse:
    return FileResponse(STATIC / "index.html", headers=dict(HEADERS))


@router.get("/inspector/charts.js", include_in_schema=False)
async def read_chart_script(request: Request) -> Response:
    """The script that draws charts; made once per process."""
    scripts: ChartScript = request.app.state.chart_script
    script = await scripts.get()
    headers = {**HEADERS, "ETag": script.tag, "Vary": "Accept-Encoding"}
    if script.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    body = script.compressed
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        body = gzip.decompress(body)
    return Response(body, headers=headers, media_type="text/javascript; charset=utf-8")


@router.get("/v1/inspector", tags=["operate"])
async def read_inspector_facts(
    sessions: TheSessions, operations: TheOperations, caller: TheCaller
) -> InspectorFacts:
    """List what the inspector offers: domains for new sessions, and to operators where Flower answers."""
    return InspectorFacts(
        tenant_id=caller.tenant_id,
        domains=sessions.domains.names(),
        default_domain=sessions.domains.resolve(None),
        flower_url=operations.flower_url if caller.only_user is None else None,
    )


def install(app: FastAPI) -> None:
    """Add the page at `/` and its files below `/inspector/`."""
    app.state.chart_script = ChartScript()
    app.include_router(router)
    app.include_router(evaluations.router)
    app.include_router(repairs.router)
    app.include_router(replays.router)
    app.mount("/inspector", GuardedFiles(directory=STATIC), name="inspector")
