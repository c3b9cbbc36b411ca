"""The API documentation at `/docs`: Swagger UI from an installed package, with a separate security policy."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

from orchestrator.errors import NotFound

STATIC = Path(str(files("fastapi_offline"))) / "static"
FILES: Final = frozenset({"swagger-ui-bundle.js", "swagger-ui.css"})
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Parley API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="description"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
START: Final = 'SwaggerUIBundle({url: "/openapi.json", dom_id: "#description"});\n'

router = APIRouter(prefix="/docs", include_in_schema=False)


@router.get("")
async def show_page() -> Response:
    return _guarded(Response(PAGE, media_type="text/html; charset=utf-8"))


@router.get("/start.js")
async def read_start() -> Response:
    return _guarded(Response(START, media_type="text/javascript; charset=utf-8"))


@router.get("/{name}")
async def read_file(name: str) -> Response:
    if name not in FILES:
        raise NotFound("file", name)
    return _guarded(FileResponse(STATIC / name))


def _guarded(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response
