"""Sentences and labels for the user, as codes with values. RES renders them (RS-3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Saying:
    """A sentence or label for the user, independent of language.

    Args:
        code: the key of its entry in `res/templates/<language>/sayings.toml`.
        values: values for the entry's variables, as JSON or other sayings.
        detail: text for developers and models, or an empty string.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    detail: str = ""

    def with_detail(self, detail: str) -> Saying:
        return replace(self, detail=detail)

    def quoting(self, quote: Callable[[str], str]) -> Saying:
        """Return the saying with `quote` applied to each item of its value `words`, if any."""
        words: list[str] | None = self.values.get("words")
        return self if words is None else replace(self, values={**self.values, "words": [*map(quote, words)]})

    def __str__(self) -> str:
        """Return the detail, or the code and the values if the detail is empty."""
        if self.detail:
            return self.detail
        told = ", ".join(f"{name}: {value}" for name, value in self.values.items())
        name = self.code.replace("_", " ")
        return f"{name} ({told})" if told else name


def write_told(told: Told) -> str | dict[str, Any]:
    if isinstance(told, str):
        return told
    detail = {"detail": told.detail} if told.detail else {}
    return {"code": told.code, "values": dict(told.values), **detail}


def read_told(body: Any) -> Told:
    return body if isinstance(body, str) else Saying(**body)


def quote_all(told: Told) -> str:
    """Return a saying's values, joined by spaces, or `told` itself if it is a string."""
    if isinstance(told, str):
        return told
    values: list[Any] = list(told.values.values())
    return " ".join(" ".join(map(str, value)) if value.__class__ is list else str(value) for value in values)


Told: TypeAlias = Saying | str
"""Text for the user: a saying, or text that is already in the user's language."""


WordFor: TypeAlias = Callable[[str, Saying], str]
"""A function that renders a saying in the language of a domain, given by name."""


def unworded(domain: str, told: Saying) -> str:
    """Return the saying's detail, or its code and values, for stores that are used without RES."""
    del domain
    return str(told)


def say(code: str, /, **values: Any) -> Saying:
    return Saying(code, values)
