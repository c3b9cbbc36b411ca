"""Storms in which the same turn meets several crashes.

`test_poison` tests suspected turns. Here, suspicion would end the storm early.
"""

from __future__ import annotations

import psycopg

_FORGET = """
CREATE FUNCTION forget_crashes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.crashes := 0; RETURN NEW; END';
CREATE TRIGGER forget_crashes BEFORE UPDATE ON turns FOR EACH ROW EXECUTE FUNCTION forget_crashes();
"""


def suspect_nobody(database_url: str) -> None:
    """Count each crash as a neighbor's, in this database."""
    with psycopg.connect(database_url) as connection:
        connection.execute(_FORGET)
