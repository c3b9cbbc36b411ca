"""Generate random SQL: queries over two tables, with known tricks against guardrails."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.cases import parts

ENTITIES = {"sales": ["id", "day", "region", "amount", "customer id"], "customers": ["id", "name", "city"]}

NAMES = ["id", "amount", "region", "day", '"customer id"', "name", "city", "x", "secret", "sales.id", "*"]
INNER = [
    *(
        "a; SELECT x FROM secret --",
        "a FROM secret --",
        "a), (SELECT x FROM secret) --",
        "a' UNION SELECT x FROM secret --",
    ),
    *(
        'a" FROM secret --',
        "a; DELETE FROM sales --",
        "a; COPY sales TO '/tmp/sales.csv' --",
        "a,(select x from secret)",
    ),
    *(
        "a FROM read_text('/etc/passwd') --",
        "a\n; SELECT x FROM secret",
        "a/*",
        "*/ , x FROM secret --",
        "plain",
        "two words",
    ),
    *(
        "a\\'; SELECT x FROM secret --",
        "a''; SELECT x FROM secret --",
        "int) from secret --",
        "x from secret t(",
    ),
]
QUOTES: list[Callable[[str], str]] = [
    lambda text: f"$${text}$$",
    lambda text: f"$q${text}$q$",
    lambda text: f"E'{text}'",
    lambda text: f"N'{text}'",
    lambda text: f"X'{text}'",
    lambda text: f"U&'{text}'",
    lambda text: f"'{text}'",
    lambda text: f'"{text}"',
    lambda text: f"`{text}`",
    lambda text: f"[{text}]",
    lambda text: '"' + text.replace('"', '""') + '"',
    lambda text: "'" + text.replace("'", "''") + "'",
    lambda text: text,
]
SOURCES = parts("""sales | customers | SALES | secret | main.secret | memory.main.secret | "secret"
    | 'secret' | sales, secret | read_text('/etc/passwd') | '/etc/passwd' | glob('/*') | duckdb_tables()
    | range(5) | (SELECT x FROM secret) | query('select x from secret') | query_table('secret')
    | information_schema.tables | (VALUES (1)) v(id) | sales JOIN customers USING (id)
    | sales POSITIONAL JOIN secret | LATERAL (SELECT x FROM secret) | unnest([1, 2])
    | (PIVOT secret ON x USING count(*)) | (SUMMARIZE secret) | (FROM secret) | (TABLE secret)
    | (DESCRIBE sales)""")
CALLS = parts("""count({}) | hex({}) | repeat({}, 100) | repeat({}, 100000000)
    | list_reduce([{}], lambda a, b: a || b) | sum({}) | format('{{0}}{{0}}', {}) | bin({})
    | levenshtein(repeat({}, 30), 'b') | getenv({}) | read_text({}) | upper({}) | current_setting({})
    | lpad({}, 50, 'x') | query({}) | json_execute_serialized_sql({}) | coalesce({}, 1) | [{}]
    | {{'k': {}}} | struct_pack(a := {}) | extract('day' FROM {}) | regexp_replace({}, '.', 'x', 'g')
    | getvariable({}) | 0x1{} | (SELECT max(x) FROM secret) | EXISTS (FROM secret) | {}::VARCHAR
    | TRY_CAST({} AS INT) | COLUMNS({})""")
SHAPES = parts("""SELECT {e} AS {q} FROM {s} | SELECT {e} {q} FROM {s} | SELECT {e} FROM {s} AS {q}
    | SELECT {e}::{q} FROM {s} | SELECT CAST({e} AS {q}) FROM {s} | SELECT {e} FROM {s} ORDER BY {q}
    | SELECT {e} COLLATE {q} FROM {s} | FROM {s} | WITH {q} AS (SELECT {e} FROM {s}) SELECT * FROM {q}
    | WITH secret AS (FROM {s}) SELECT {e} FROM secret | SELECT {e} FROM {s} WHERE {e} = {q}
    | SELECT {e} FROM {s} UNION ALL SELECT {e} FROM {s} | SUMMARIZE {s}
    | SELECT {e} FROM {s} GROUP BY ALL HAVING {e} IS NOT NULL | PIVOT {s} ON {e} USING count(*)
    | DESCRIBE {s} | SELECT {e} FROM {s} AT TIME ZONE {q} | SELECT INTERVAL {q} DAY FROM {s}
    | SELECT {e} -> {q} FROM {s} | SELECT * EXCLUDE ({q}) FROM {s}
    | SELECT * REPLACE ({e} AS {q}) FROM {s} | SELECT {e} FROM {s} USING SAMPLE {q}
    | SELECT {e} FROM {s} WINDOW {q} AS (PARTITION BY id) | SELECT {e}.{q} FROM {s}
    | SELECT {{{q}: {e}}} FROM {s}
    | WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT {e} FROM {s}, t
    | {q}; {s} | DELETE FROM {s} | COPY ({s}) TO {q} | ATTACH {q}
    | SELECT {e} FROM {s}; SELECT {e} FROM {s} | SELECT ?, $1, ${q}""")
NOISE = [
    " ",
    "\n",
    "\t",
    "/* x */",
    "-- x\n",
    ";",
    "'",
    '"',
    "$$",
    "\\",
    ")",
    "(",
    "\u200b",
    "\u00a0",
    "\uff07",
    "\x00",
    "",
]


def make_text(random: Random) -> str:
    """Generate a text. Most texts are queries; some contain a wrong character."""
    text = random.choice(SHAPES).format(
        e=_expression(random, 0), s=random.choice(("sales", random.choice(SOURCES))), q=_named(random)
    )
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        place = random.randrange(len(text) + 1)
        text = text[:place] + random.choice(NOISE) + text[place + random.choice((0, 0, 1)) :]
    return text


def _expression(random: Random, depth: int) -> str:
    if depth < 4 and random.random() < 0.5:
        return random.choice(CALLS).format(_expression(random, depth + 1))
    return random.choice(("id", random.choice((*NAMES, "1", "'a'", _named(random)))))


def _named(random: Random) -> str:
    odd = random.choice(QUOTES)(random.choice(INNER))
    return random.choice(("a", odd, odd))
