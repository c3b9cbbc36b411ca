"""Model-written SQL accesses only the allowed tables, with bounded cost (PX-10)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from select import select
from typing import Any, Self

import psutil
import pytest

from orchestrator.adapters.sandbox import SqlSandbox, process
from orchestrator.domain.guarding import READ_ONLY
from orchestrator.domain.services import QueryRows, Table
from orchestrator.errors import ToolFailure
from orchestrator.ports.sandbox import QueryLimits, SandboxLimits, StopCategory, Stopped
from orchestrator.tools.guardrails import sql
from orchestrator.tools.guardrails.apply import GuardedSql
from orchestrator.tools.guardrails.verdict import ApprovedCode, Category, RejectedCode
from tests.attacks.sql_texts import ENTITIES, make_text
from tests.unit.tools.guardrail_samples import Sample, in_short, read_hostile

JUDGE = Path(__file__).with_name("sql_judge.py")
TEXTS, TEXTS_LONG = 600, 100_000
LONGEST_S = 1.0  # CPU time: waiting for a CPU doesn't count
LOOK_EVERY_S = 0.1
MOST_BYTES = 768 * 1024 * 1024  # address space of the judge's process
TABLES = {
    "sales": Table(
        [("id", "INT"), ("day", "DATE"), ("region", "TEXT"), ("amount", "DOUBLE"), ("customer id", "INT")],
        [(1, "2024-01-05", "north", 10, 1), (2, None, "", 20.5, 2)],
    ),
    "customers": Table([("id", "INT"), ("name", "TEXT"), ("city", "TEXT")], [(1, 'A"d,a\n', "Bonn")]),
}
SMALL = QueryLimits(rows=5, process=SandboxLimits(wall_s=8, cpu_s=1, memory_bytes=512 * 1024 * 1024))


class Judge:
    """The process that runs approved statements. It is restarted if a statement ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.longest_s = 0.0
        self.most_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def judge(self, text: str) -> str:
        """Return what a statement accessed: "limit" if a limit ended it, or an empty string."""
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        measured = psutil.Process(self._process.pid)
        before_s = _used_s(measured)
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        while not select([self._process.stdout], (), (), LOOK_EVERY_S)[0]:
            if _used_s(measured) - before_s > LONGEST_S:
                self._measure(measured, before_s)
                self._process.kill()
        line = self._process.stdout.readline()
        if line:
            self._measure(measured, before_s)
            return json.loads(line)
        code = self._end()
        return "limit" if code in LIMITS else f"the system (signal {-code})"

    def _start(self) -> subprocess.Popen[str]:
        started = subprocess.Popen(
            [sys.executable, "-I", "-B", str(JUDGE), str(process.SQL_WORKER.parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=process.ENVIRONMENT,
            text=True,
        )
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        return started

    def _end(self) -> int:
        if self._process is None:
            return 0
        self._process.stdin.close()  # type: ignore[union-attr]
        code = self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]
        self._process = None
        return code

    def _measure(self, measured: psutil.Process, before_s: float) -> None:
        """Return the elapsed time and the maximum memory. The value of an ended child starts from its parent's."""
        self.longest_s = max(self.longest_s, _used_s(measured) - before_s)
        status = Path(f"/proc/{measured.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        self.most_bytes = max(self.most_bytes, int(found[1]) * 1024 if found else 0)


def _used_s(measured: psutil.Process) -> float:
    used = measured.cpu_times()
    return used.user + used.system


LIMITS = {-9, -24, -6, -11}  # time, memory


UNTOUCHED = {"rejected", "", "limit"}


def fuzz(count: int, seed: int, *, until_touched: bool = False) -> Counter[str]:
    """Check random statements, run approved ones, and count the accesses, "rejected" and "".

    `until_touched`: True to stop at the first forbidden access.
    """
    random, counts = Random(seed), Counter[str]()
    with Judge() as judge:
        for _ in range(count):
            verdict = sql.check_sql(make_text(random), ENTITIES)
            touched = "rejected" if isinstance(verdict, RejectedCode) else judge.judge(verdict.code)
            counts[touched] += 1
            if isinstance(verdict, ApprovedCode) and touched not in UNTOUCHED:
                print(f"\nTouched {touched}: {verdict.code}")
                if until_touched:
                    break
    print(
        f"\n{dict(counts)}; at most {judge.longest_s:.1f} s and {judge.most_bytes >> 20} MiB for one statement"
    )
    assert judge.longest_s < LONGEST_S + 2, "what is ended has some time to end"
    assert 0 < judge.most_bytes <= MOST_BYTES
    return counts


@pytest.mark.parametrize(
    ("count", "seed"),
    [(TEXTS, 1), pytest.param(TEXTS_LONG, 2, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_nothing_that_is_approved_touches_anything_but_the_allowed_tables(count: int, seed: int) -> None:
    counts = fuzz(count, seed)

    assert set(counts) <= UNTOUCHED, counts
    assert counts[""] > 45


def test_the_fuzzer_finds_a_hole_that_was_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the second check, quoted names are accepted."""
    monkeypatch.setattr(sql, "check_sql", partial(sql._judge, statements=READ_ONLY))

    counts = fuzz(TEXTS, seed=9, until_touched=True)

    assert set(counts) - UNTOUCHED, counts


@pytest.mark.parametrize("sample", in_short(sample for sample in read_hostile("sql") if sample.alone))
async def test_the_process_stops_alone_what_the_guardrails_would_reject(sample: Sample) -> None:
    result = await SqlSandbox().run_sql(sample.code, TABLES, SMALL)

    assert ("refused" if isinstance(result, Stopped) else "answered") == sample.alone, result


@pytest.mark.parametrize(
    "code",
    [
        "select hex(hex(hex(hex(repeat('a', 100000000)))))",
        pytest.param(
            "select list_reduce(range(1000000)::varchar[], lambda a, b: a || b || a)", marks=pytest.mark.slow
        ),
        pytest.param(
            "select format('{0}{0}{0}', repeat(region, 100000000)) from sales", marks=pytest.mark.slow
        ),
        pytest.param("select levenshtein(repeat('a', 200000), repeat('b', 200000))", marks=pytest.mark.slow),
        pytest.param("select bin(repeat('a', 500000000))", marks=pytest.mark.slow),
        "select count(*) from range(100000) a, range(100000) b, range(1000) c where a.range + b.range = c.range + 0.5",
    ],
)
async def test_a_costly_query_is_ended_in_its_process(code: str) -> None:
    result = await SqlSandbox().run_sql(code, TABLES, SMALL)

    assert isinstance(result, Stopped)
    assert result.category in {StopCategory.MEMORY, StopCategory.TIMEOUT, StopCategory.ERROR}


async def test_a_query_finds_the_values_as_they_are() -> None:
    found = await GuardedSql(SqlSandbox()).run("select * from sales order by id", TABLES)
    names = await GuardedSql(SqlSandbox()).run("select name from customers", TABLES)

    assert found.columns[1] == ("day", "DATE")
    assert found.rows == [[1, "2024-01-05", "north", 10.0, 1], [2, None, "", 20.5, 2]]
    assert names.rows == [['A"d,a\n']]
    assert found.code == "SELECT * FROM sales ORDER BY id"


def test_the_process_loads_the_engine_alone() -> None:
    """The wrapper package `duckdb` takes longer to load than most queries take."""
    look = (
        "import sys; sys.path.append(sys.argv[1]); import sql_worker; "
        "print('_duckdb' in sys.modules, 'duckdb' in sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-I", "-B", "-c", look, str(process.SQL_WORKER.parent)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert loaded.stdout.split() == ["True", "False"]


async def test_more_rows_than_wanted_are_cut_off_and_that_is_said() -> None:
    found = await SqlSandbox().run_sql("from range(10)", TABLES, SMALL)

    assert found == QueryRows((("range", "BIGINT"),), [[0], [1], [2], [3], [4]], is_cut=True)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("select nothing from sales", "unknown_entity"),
        ("select id from secret", "unknown_entity"),
        ("select id + region from sales", "error"),
        ("delete from sales", "not_read_only"),
    ],
)
async def test_a_refusal_says_how_to_repair_the_query(code: str, said: str) -> None:
    with pytest.raises(ToolFailure) as raised:
        await GuardedSql(SqlSandbox()).run(code, TABLES)

    assert str(raised.value).startswith(said)


# Statements that once passed the guardrail, over tables `sales` and, not allowed, `secret`.
PASSED_ONCE = [
    "SELECT id FROM sales AS $$a; SELECT x FROM secret --$$",
    "SELECT id AS E'a; SELECT x FROM secret --' FROM sales",
    "SELECT id AS N'a; DELETE FROM sales --' FROM sales",
    'SELECT id::"a);SELECT x FROM secret--" FROM sales',
    "SELECT id AS $$a FROM read_text('/etc/passwd') --$$ FROM sales",
    "SELECT id AS $$a; COPY sales TO '/tmp/x' --$$ FROM sales",
    'SELECT id::"a\'b" FROM sales',
]


@pytest.mark.parametrize("code", PASSED_ONCE)
def test_what_passed_once_is_rejected(code: str) -> None:
    assert isinstance(sql.check_sql(code, ENTITIES), RejectedCode)


@pytest.mark.parametrize(
    ("code", "category", "said"),
    [
        (
            "SELECT id AS $$a; SELECT x FROM secret --$$ FROM sales",
            Category.NOT_ONE_STATEMENT,
            "one statement",
        ),
        ("SELECT id AS $$a FROM secret --$$ FROM sales", Category.UNKNOWN_ENTITY, "secret"),
        ("SELECT id AS $$a FROM read_text('x') --$$ FROM sales", Category.FORBIDDEN_SOURCE, "read_text"),
    ],
)
def test_what_is_found_when_the_text_is_read_again_is_said(code: str, category: Category, said: str) -> None:
    verdict = sql.check_sql(code, ENTITIES)

    assert isinstance(verdict, RejectedCode)
    assert verdict.category == category
    assert said in verdict.message


@pytest.mark.parametrize(
    "code", ["select 0x1F", "select 0b1 from sales", "select 1a", 'select 1"a"', "select .5x"]
)
def test_a_number_with_a_name_right_behind_it_is_rejected(code: str) -> None:
    """The database interprets `0x1F` as `0 AS x1F`, although the author meant 31."""
    verdict = sql.check_sql(code, ENTITIES)

    assert isinstance(verdict, RejectedCode)
    assert "write numbers in decimal" in verdict.message


@pytest.mark.parametrize(
    "code",
    [
        'SELECT "customer id" FROM sales',
        'SELECT id AS "Total (EUR), 100 %" FROM sales',
        "SELECT 'it''s; --' FROM sales",
    ],
)
def test_ordinary_names_and_texts_are_taken(code: str) -> None:
    verdict: Any = sql.check_sql(code, ENTITIES)

    assert isinstance(verdict, ApprovedCode)
    assert verdict.code == code
