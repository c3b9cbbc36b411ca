"""Serve the inspector: its page, static files, chart script and options."""

import gzip
import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from gateway.dependencies import TheCaller, TheOperations, TheSessions
from gateway.inspector import repairs, reports
from gateway.inspector.charts import ChartScript
from gateway.schemas import ResponseModel

STATIC = Path(str(files("gateway.inspector"))) / "static"

CONTENT_SECURITY_POLICY: Final[str] = "; ".join(  # noqa: FLY002  # one directive a line
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Scripts cannot turn text into markup, except to empty an element (scripts/trusted.js).
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
    # Browsers revalidate each time, so that an upgrade is visible immediately.
    "Cache-Control": "no-cache",
}

router = APIRouter()


class InspectorFacts(ResponseModel):
    tenant_id: str
    domains: list[str]
    default_domain: str
    flower_url: str | None


_VERSION = re.compile(r"[0-9a-f]{32}")


class GuardedFiles(StaticFiles):
    """Static files with the inspector's headers.

    `version`: a hash of all files. Files are also available under a path that begins with `version`, for
    browsers to cache. During a rolling update, a page may request a file of another version. The gateway then
    sends its own version of the file, without caching.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory)
        whole = sha256()
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            whole.update(sha256(file.read_bytes()).digest())
        self.version = whole.hexdigest()[:32]

    async def get_response(self, path: str, scope: Scope) -> Response:
        version, _, file = path.partition("/")
        versioned = _VERSION.fullmatch(version) is not None
        response = await super().get_response(file if versioned else path, scope)
        response.headers.update(HEADERS)
        if version == self.version:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


@router.get("/", include_in_schema=False)
async def show_page(request: Request) -> HTMLResponse:
    return HTMLResponse(request.app.state.inspector_page, headers=dict(HEADERS))


@router.get("/inspector/charts.js", include_in_schema=False)
async def read_chart_script(request: Request) -> Response:
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
    """Return the tenant, the domains for new sessions and, unless the caller is a user, Flower's URL."""
    return InspectorFacts(
        tenant_id=caller.tenant_id,
        domains=sessions.domains.names(),
        default_domain=sessions.domains.resolve(None),
        flower_url=operations.flower_url if caller.only_user is None else None,
    )


def install(app: FastAPI) -> None:
    app.state.chart_script = ChartScript()
    app.include_router(router)
    app.include_router(repairs.router)
    app.include_router(reports.router)
    guarded = GuardedFiles(STATIC)
    written = (STATIC / "index.html").read_text(encoding="utf-8")
    app.state.inspector_page = written.replace('"/inspector/', f'"/inspector/{guarded.version}/')
    app.mount("/inspector", guarded, name="inspector")
