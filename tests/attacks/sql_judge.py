"""Run approved SQL where a security hole would show, and check what the statements accessed.

The database has an additional table that is not allowed, with a unique word. The connection may open files,
so only the system call filter prevents this. Each input line is a statement, each output line a verdict. A
statement that makes a forbidden system call ends the process.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(sys.argv[1])))

from isolation import isolate
from sql_worker import EVERY_KIND

CANARY = "canary-4711"
TABLES = f"""
CREATE TABLE sales (id INT, day DATE, region TEXT, amount DOUBLE, "customer id" INT);
INSERT INTO sales VALUES (1, '2024-01-05', 'north', 10, 1), (2, '2024-01-20', 'south', 20, 2);
CREATE TABLE customers (id INT, name TEXT, city TEXT);
INSERT INTO customers VALUES (1, 'Ada', 'Bonn'), (2, 'Ben', 'Rome');
CREATE TABLE secret (x TEXT); INSERT INTO secret VALUES ('{CANARY}');
"""
WHOLE = "SELECT (SELECT count(*) FROM sales), (SELECT count(*) FROM customers), (SELECT sum(amount) FROM sales), \
(SELECT list(x) FROM secret), (SELECT count(*) FROM duckdb_tables()), (SELECT count(*) FROM duckdb_databases())"


def judge(connection: duckdb.DuckDBPyConnection, text: str, before: object) -> str:
    """Return what a statement accessed besides the allowed tables, or an empty string."""
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error:
        return ""
    if len(statements) != 1:
        return f"{len(statements)} statements"
    try:
        rows = connection.execute(statements[0]).fetchmany(2000)
    except (duckdb.Error, RuntimeError, MemoryError, ValueError, OverflowError):
        rows = []
    if CANARY in repr(rows):
        return "the secret table"
    return "" if connection.execute(WHOLE).fetchall() == before else "data were changed"


def main() -> None:
    connection = duckdb.connect(
        config={"threads": 1, "async_threads": 0, "temp_directory": "", "memory_limit": "300MB"}
    )
    connection.execute(TABLES)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(EVERY_KIND).fetchall()
    before = connection.execute(WHOLE).fetchall()
    limits = {"memory_bytes": 768 * 1024 * 1024, "cpu_s": 3600}
    assert isolate({"limits": limits})
    os.write(1, b"ready\n")
    for line in sys.stdin:
        os.write(1, (json.dumps(judge(connection, json.loads(line), before)) + "\n").encode())
    os._exit(0)


if __name__ == "__main__":
    main()
