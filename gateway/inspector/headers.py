"""The headers of the inspector's files: a page that can run and load nothing but its own files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
