"""Sentences and labels for the user as codes with values: RES words them in the domain's language (RS-3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Saying:
    """A sentence or label for the user.

    `code`: its entry in `res/templates/<language>/sayings.toml`. `values`: the variables of that entry, as JSON
    or sayings. `detail`: what developers and models read instead, or an empty string.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    detail: str = ""

    def with_detail(self, detail: str) -> Saying:
        return replace(self, detail=detail)

    def quoting(self, quote: Callable[[str], str]) -> Saying:
        """Return the saying with its quoted `words` replaced."""
        words: list[str] | None = self.values.get("words")
        return self if words is None else replace(self, values={**self.values, "words": [*map(quote, words)]})

    def __str__(self) -> str:
        """Return the detail, or else the code and its values, for logs, developers and models."""
        if self.detail:
            return self.detail
        told = ", ".join(f"{name}: {value}" for name, value in self.values.items())
        name = self.code.replace("_", " ")
        return f"{name} ({told})" if told else name


def write_told(told: Told) -> str | dict[str, Any]:
    """Serialize a message to the user as JSON."""
    if isinstance(told, str):
        return told
    detail = {"detail": told.detail} if told.detail else {}
    return {"code": told.code, "values": dict(told.values), **detail}


def read_told(body: Any) -> Told:
    """Parse what `write_told` returned."""
    return body if isinstance(body, str) else Saying(**body)


def quote_all(told: Told) -> str:
    """Return the texts that a sentence names, in one."""
    if isinstance(told, str):
        return told
    values: list[Any] = list(told.values.values())
    return " ".join(" ".join(map(str, value)) if value.__class__ is list else str(value) for value in values)


Told: TypeAlias = Saying | str
"""A saying, or text that is already in the user's language: a domain's, a tool's or a person's."""


WordFor: TypeAlias = Callable[[str, Saying], str]
"""A function that renders a saying in the language of a domain, given the domain's name."""


def unworded(domain: str, told: Saying) -> str:
    """Return the code, for stores that run without RES."""
    del domain
    return str(told)


def say(code: str, /, **values: Any) -> Saying:
    return Saying(code, values)
