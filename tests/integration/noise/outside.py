"""External services on one port: a warehouse, a webhook receiver and a trace collector.

Their errors quote the requests, including credentials.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.processes.http import Asked, answering


class Outside:
    """The services. `asked`: the requests, by the first part of its path."""

    def __init__(self, result: str) -> None:
        self.url = ""
        self.result = result
        self.asked: dict[str, list[Asked]] = defaultdict(list)

    def answer(self, asked: Asked) -> tuple[int, Any]:
        part = asked.path.split("/")[1].partition("?")[0]
        self.asked[part].append(asked)
        quoted = {"error": f"not with {asked.path} {asked.headers} {asked.body[:2000]!r}"}
        match part:
            case "track":
                return 200, {"place": f"{self.result} in the hall"}
            case "hooks" if len(self.asked["hooks"]) > 2:
                return 200, {}
            case "v1":  # traces
                return 200, {}
            case _:
                return 500, quoted


@contextmanager
def outside(result: str) -> Iterator[Outside]:
    place = Outside(result)

    with answering(place.answer) as place.url:
        yield place
