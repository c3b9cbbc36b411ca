"""Sentences and labels for the user as codes with values: RES words them in the domain's language (RS-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Saying:
    """A sentence or label for the user.

    `code`: its entry in `res/templates/<language>/sayings.toml`. `values`: the variables of that entry, as JSON
    or sayings.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        """Return the code and its values, for logs and developers."""
        told = ", ".join(f"{name}: {value}" for name, value in self.values.items())
        return f"{self.code} ({told})" if told else self.code


Told: TypeAlias = Saying | str
"""A saying, or text that is already in the user's language: a domain's, a tool's or a person's."""


def say(code: str, /, **values: Any) -> Saying:
    return Saying(code, values)
