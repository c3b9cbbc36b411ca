"""The plan of one start of a store."""

from __future__ import annotations

from dataclasses import dataclass

from parley.processes import Program


@dataclass(frozen=True, slots=True)
class StorePlan:
    """The program to start, and the address (with password) at which it will answer."""

    program: Program
    url: str
