"""The mailroom with calls counted outside of the workers, at `MAILROOM_URL`.

The test copies this file into the domain's folder, in place of its services.
"""

from __future__ import annotations

import asyncio
import json
import os
from urllib.parse import urlsplit

from parley import JsonObject, Service, ToolCall


async def post(path: str, **body: str) -> None:
    """Post to the counting service and wait for completion, concurrently for all turns."""
    address = urlsplit(os.environ["MAILROOM_URL"])
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(f"POST /{path} HTTP/1.0\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        if not (await reader.read()).startswith(b"HTTP/1.0 200"):
            raise ConnectionError("the mailroom did not answer")
    finally:
        writer.close()


class Mailroom(Service):
    async def read_page(self) -> JsonObject:
        return {"text": "The mailroom is open."}

    async def list_salaries(self) -> JsonObject:
        return {"rows": []}

    async def count_letters(self, *, call: ToolCall) -> JsonObject:
        await post("letters", session=call.session_id)
        return {"waiting": 2}

    async def send(self, *, recipient: str) -> JsonObject:
        return {"mail_id": f"M-{recipient}"}

    async def recall(self, *, mail_id: str) -> JsonObject:
        return {"recalled": bool(mail_id)}

    async def print_label(self, *, recipient: str, call: ToolCall) -> JsonObject:
        await post("label", session=call.session_id, recipient=recipient)
        return {"label": recipient}

    async def send_parcel(self, *, recipient: str, call: ToolCall) -> JsonObject:
        await post("parcel", session=call.session_id, recipient=recipient)
        return {"parcel_id": f"P-{recipient}"}
