"""Choose the change that would make the data of a query which do not exist yet (PX-16)."""

from __future__ import annotations

from enum import StrEnum


class Staging(StrEnum):
    MERGE = "merge"
    SPLIT = "split"
    INSERT = "insert"


def choose_staging(sources: int, targets: int) -> Staging | None:
    """Choose the change, by how many tables are at hand and how many things asked for are missing.

    Several sources have to become one. One source and several targets: it has to be taken apart.
    One and one: what is missing has to be put in. Nothing missing: none.
    """
    if sources >= 2:
        return Staging.MERGE
    if targets >= 2:
        return Staging.SPLIT
    return Staging.INSERT if targets == 1 else None
