"""The process that runs one model-written query on a copy of its tables. The process is started from this file.

The process loads the tables into an in-memory database, drops its rights, runs the query, writes one JSON
response and exits. It trusts no input, not even a query that the guardrails have approved. A query cannot reach
files, the network or other tables.
"""

import json
import math
import os
import sys
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import _duckdb as duckdb  # only the engine, because loading the `duckdb` wrapper takes longer than running a query

sys.path.insert(0, str(Path(__file__).parent))  # the process starts as a file, outside the package

from isolation import OUT_OF_MEMORY, isolate

SETTINGS: dict[str, Any] = {
    "threads": 1,
    "async_threads": 0,  # the system-call filter applies only to the thread that installs it
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}
# One value of each type, fetched before isolation, because the types' Python modules can't be loaded later.
EVERY_KIND = """SELECT 1, 1.5, 1e0, 'a', true, DATE '2024-01-01', TIME '10:00', now(), now()::TIMESTAMP,
    INTERVAL 1 DAY, uuid(), [1], {'a': 1}, MAP {'a': 1}, 'a'::BLOB, 1::HUGEINT"""


def load(connection: duckdb.DuckDBPyConnection, tables: dict[str, Any]) -> None:
    """Create the tables from JSON Lines files, then disable external access permanently."""
    for name, table in tables.items():
        names = [column for column, _ in table["columns"]]
        columns = ", ".join(f"{quote(column)} {kind}" for column, kind in table["columns"])
        connection.execute(f"CREATE TABLE {quote(name)} ({columns})")
        connection.execute(
            f"INSERT INTO {quote(name)} FROM read_json($path, format = 'newline_delimited', columns = $columns)",
            {"path": table["path"], "columns": dict.fromkeys(names, "VARCHAR")},
        )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(EVERY_KIND).fetchall()
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def ask(connection: duckdb.DuckDBPyConnection, request: dict[str, Any]) -> str:
    statements = connection.extract_statements(request["statement"])
    # A PIVOT has the type MULTI, because DuckDB first computes its column list.
    if len(statements) != 1 or statements[0].type not in {
        duckdb.StatementType.SELECT,
        duckdb.StatementType.MULTI,
    }:
        return stopped("forbidden", "Only a single read-only statement is allowed.")
    most: int = request["limits"]["rows"]
    cursor = connection.execute(statements[0])
    columns = [(str(column[0]), str(column[1])) for column in cursor.description or ()]
    rows = cursor.fetchmany(most + 1)
    body = {"columns": columns, "rows": rows[:most], "is_cut": len(rows) > most}
    result = json.dumps(plain(body), allow_nan=False)
    if len(result) > request["limits"]["output_bytes"]:
        return stopped("output_too_large", f"The result has {len(result)} bytes as JSON; return less.")
    return f'{{"returned": {result}}}'


def plain(value: Any) -> Any:
    """Convert a database value to a JSON value. Non-finite numbers become None."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return float(value) if value.is_finite() else None
        case date() | datetime() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case bytes():
            return value.hex()
        case list() | tuple():
            values = cast("Iterable[Any]", value)
            return [plain(one) for one in values]
        case dict():
            members = cast("dict[Any, Any]", value)
            return {str(key): plain(one) for key, one in members.items()}
        case _:
            return str(value)


def attempt(request: dict[str, Any]) -> str:
    connection = duckdb.connect(":memory:", config={**SETTINGS, "memory_limit": request["limits"]["memory"]})
    try:
        load(connection, request["tables"])
    except duckdb.Error as error:
        return stopped("unavailable", f"Could not load the tables: {first_line(error)}")
    if not isolate(request):
        return stopped("unavailable", "This system can't isolate processes from the network.")
    try:
        return ask(connection, request)
    except (duckdb.OutOfMemoryException, MemoryError):
        return stopped("memory", "The query exceeded its memory limit.")
    except Exception as error:  # noqa: BLE001 - any error in the query is a result
        return stopped("error", first_line(error))


def stopped(category: str, message: str) -> str:
    return json.dumps({"stopped": category, "message": message})


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:500]


def main() -> None:
    """Answer the request on standard input, then exit without running cleanup code."""
    try:
        answer = attempt(json.loads(sys.stdin.buffer.read())).encode()
        while answer:
            answer = answer[os.write(1, answer) :]
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(0)


if __name__ == "__main__":
    main()
