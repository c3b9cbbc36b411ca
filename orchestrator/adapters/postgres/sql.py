"""Loads the named statements of the hot path from their files. Nothing is generated at run time."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import LiteralString, cast

_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


@cache
def statement(name: str) -> LiteralString:
    """The text of `sql/<name>.sql` without its comments; arguments are named in psycopg's form."""
    source = (
        resources.files("orchestrator.adapters.postgres").joinpath("sql", f"{name}.sql").read_text("utf-8")
    )
    return cast("LiteralString", _COMMENT.sub("", source))
