"""The numbers of attempts in docs/testing.md are counted from the tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.attacks import test_addresses, test_gateway, test_python, test_sql
from tests.cases import for_each
from tests.integration import test_openapi
from tests.integration.workers import test_workers_hardened, test_workers_rabbitmq
from tests.unit.tools.guardrail_samples import read_hostile

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text()
ROW = re.compile(r"^\| (?P<area>[^|]+) \| (?P<short>[\d,]+) \| (?P<long>[\d,]+) \| 0 \|$", re.MULTILINE)
ADDRESSES = sum(
    len(each) for each in (*test_addresses.OF_BLOCKS.values(), test_addresses.NEAR, test_addresses.METADATA)
)
ENVELOPES = len(test_workers_hardened.ENVELOPES) + len(test_workers_hardened.BYTES)
MESSAGES = len(test_workers_hardened.SHAPES) + len(test_workers_rabbitmq.ODD)
SAMPLES = len(read_hostile("sql")) + len(read_hostile("python"))
COUNTED = {
    "random SQL, checked and run": (test_sql.TEXTS, test_sql.TEXTS_LONG),
    "random Python, checked and run": (test_python.FUNCTIONS, test_python.FUNCTIONS_LONG),
    "hostile SQL and Python samples": (SAMPLES, SAMPLES),
    "special addresses in all forms": (ADDRESSES, ADDRESSES),
    "malformed envelopes in a Redis queue": (ENVELOPES, ENVELOPES),
    "malformed Celery and RabbitMQ messages": (MESSAGES, MESSAGES),
    "tokens with odd claims": (len(test_gateway.ODD_CLAIMS), len(test_gateway.ODD_CLAIMS)),
    "foreign origins": (len(test_gateway.ELSEWHERE), len(test_gateway.ELSEWHERE)),
    "requests generated from the API description (minimum)": (
        test_openapi.AT_LEAST,
        test_openapi.AT_LEAST_LONG,
    ),
}


@for_each("area", COUNTED)
def test_the_page_tells_how_many_attempts_there_are(area: str) -> None:
    told = {
        row["area"]: tuple(int(row[each].replace(",", "")) for each in ("short", "long"))
        for row in ROW.finditer(PAGE)
    }

    assert told[area] == COUNTED[area]
    assert set(told) == set(COUNTED)
