"""Security headers for all HTTP responses, including errors, and a limit on the number of request headers."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import problem, problem_of_fault
from orchestrator.errors import InputTooLarge

MAX_HEADERS = 100
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OF_DATA = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class SecurityHeaders:
    """Middleware that adds security headers to every response. Headers set by a route take precedence.

    It also rejects requests with more than `MAX_HEADERS` headers, and answers unexpected errors with a
    problem document. `shared`: True if pages of other origins can read responses.
    """

    def __init__(self, app: ASGIApp, *, shared: bool = False) -> None:
        self.app = app
        self._always = {**ALWAYS, **({"Cross-Origin-Resource-Policy": "cross-origin"} if shared else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        begun = False

        async def add_and_send(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                kind = headers.get("content-type", "")
                data = kind.startswith(("application/json", "application/problem+json", "text/event-stream"))
                for name, value in {**self._always, **(OF_DATA if data else {})}.items():
                    headers.setdefault(name, value)
            await send(message)

        if len(scope["headers"]) > MAX_HEADERS:
            detail = f"A request can have at most {MAX_HEADERS} headers."
            await problem(431, InputTooLarge.code, detail, field="headers")(scope, receive, add_and_send)
            return
        try:
            await self.app(scope, receive, add_and_send)
        except Exception as error:
            if begun:
                raise
            await problem_of_fault(scope["path"], error)(scope, receive, add_and_send)
