"""What the tables are made of: the metadata with its naming rules, and the columns that recur."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, MetaData, Text, func, text

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
)


def time_column(name: str, *, now: bool = False) -> Column[Any]:
    default = func.clock_timestamp() if now else None
    return Column(name, DateTime(timezone=True), nullable=not now, server_default=default)


def text_column(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Text, nullable=null)


def count_column(name: str, start: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text(str(start)))


def session_column() -> Column[str]:
    return Column("session_id", Text, nullable=False)
