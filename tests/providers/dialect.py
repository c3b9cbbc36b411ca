"""Parts of a strict provider: its rules, the parsing of its requests, and its answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import count
from typing import Any, ClassVar

import orjson

from parley.testing.scripted_model import Request
from tests.providers.rules import Body, Rule

_OPENING = re.compile(r"^---\n.*?\n---\n(.*?)(?:\{\{|\n)", re.DOTALL)


@dataclass(frozen=True)
class Reply:
    """A model's answer. `calls`: names and arguments. `reason`: the provider's stop reason."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    refusal: str | None = None
    reason: str | None = None

    def pieces(self) -> list[str]:
        return re.findall(r"\s*\S+|\s+", self.text)


@dataclass(frozen=True)
class Turn:
    """A request in the form of chat completions, for all dialects.

    `output`, `schema`: of a structured answer. `messages`: with roles and texts.
    """

    model: str
    messages: list[Any]
    tools: list[str] = field(default_factory=list)
    output: str | None = None
    schema: Any = None

    def as_request(self, path: str) -> Request:
        """Return the request for a script. The system message identifies the prompt."""
        said = next(
            (str(one["content"]) for one in self.messages if one["role"] in {"system", "developer"}), ""
        )
        body = {"model": self.model, "messages": self.messages, "metadata": {"prompt_id": prompt_of(said)}}
        return Request(path, body, {})


class Dialect:
    """A provider's request and answer formats."""

    name: ClassVar[str]
    path: ClassVar[str]
    rules: ClassVar[tuple[Rule, ...]]

    def __init__(self) -> None:
        self._numbers = count(1)

    def number(self) -> int:
        return next(self._numbers)

    def call_id(self) -> str:
        return f"call_{self.number():08d}"

    def refuse(self, body: Body, headers: Mapping[str, str]) -> str | None:
        """Return the first rule that the request breaks, or None."""
        for one in self.rules:
            reason = one.judge(body)
            if reason is not None:
                return f"{reason} [{one.name}]"
        return None

    def takes(self, path: str) -> bool:
        return path == self.path

    def wants_stream(self, body: Body, path: str) -> bool:
        return bool(body.get("stream"))

    def read(self, body: Body, path: str) -> Turn:
        raise NotImplementedError

    def answer(self, body: Body, reply: Reply) -> Any:
        raise NotImplementedError

    def chunks(self, body: Body, reply: Reply) -> Iterator[str]:
        raise NotImplementedError

    def error(self, status: int, message: str, code: str | None = None) -> Any:
        raise NotImplementedError

    @staticmethod
    def event(body: Any, kind: str | None = None) -> str:
        named = f"event: {kind}\n" if kind else ""
        return f"{named}data: {orjson.dumps(body).decode()}\n\n"


@cache
def _openings() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in resources.files("orchestrator.models.prompts").iterdir():
        if file.name.endswith(".md") and (match := _OPENING.match(file.read_text(encoding="utf-8"))):
            found[file.name.removesuffix(".md")] = match[1].strip()
    return found


def prompt_of(system: str) -> str | None:
    """Return the prompt of a system message, by its beginning."""
    fitting = [name for name, opening in _openings().items() if system.startswith(opening)]
    return max(fitting, key=lambda name: len(_openings()[name]), default=None)
