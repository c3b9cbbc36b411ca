"""Errands: every call is sent to the counting service of the test at `ERRANDS_URL`."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from parley import JsonObject, Service, ToolCall


def post(path: str, **body: Any) -> Any:
    """Post to the counting service and wait for its answer."""
    data = json.dumps({**body, "pid": os.getpid()}).encode()
    request = urllib.request.Request(f"{os.environ['ERRANDS_URL']}/{path}", data, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


class Errands(Service):
    def look(self, *, code: str) -> JsonObject:
        return {"found": post("look", code=code)["found"]}

    def pay(self, *, code: str, call: ToolCall) -> JsonObject:
        return {"receipt": post("pay", code=code, key=call.idempotency_key)["receipt"]}

    def paid(self, *, idempotency_key: str, code: str = "") -> JsonObject:
        del code
        return post("paid", key=idempotency_key)

    def send(self, *, code: str, call: ToolCall) -> JsonObject:
        return {"sent": post("send", code=code, key=call.idempotency_key)["sent"]}
