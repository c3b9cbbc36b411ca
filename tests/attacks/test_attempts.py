"""The figures of attempts in docs/security.md are counted, and not remembered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.attacks import test_addresses, test_gateway, test_python, test_sql
from tests.integration import test_openapi
from tests.integration.workers import test_workers_hardened, test_workers_rabbitmq
from tests.unit.tools.guardrail_samples import read_hostile

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
ROW = re.compile(r"^\| (?P<area>[^|]+) \| (?P<short>[\d,]+) \| (?P<long>[\d,]+) \| 0 \|$", re.MULTILINE)
ADDRESSES = sum(
    len(each) for each in (*test_addresses.OF_BLOCKS.values(), test_addresses.NEAR, test_addresses.METADATA)
)
ENVELOPES = len(test_workers_hardened.ENVELOPES) + len(test_workers_hardened.BYTES)
MESSAGES = len(test_workers_hardened.SHAPES) + len(test_workers_rabbitmq.ODD)
SAMPLES = len(read_hostile("sql")) + len(read_hostile("python"))
COUNTED = {
    "random SQL, judged, run, and looked at": (test_sql.TEXTS, test_sql.TEXTS_LONG),
    "random Python, judged and run": (test_python.FUNCTIONS, test_python.FUNCTIONS_LONG),
    "hostile samples of SQL and Python": (SAMPLES, SAMPLES),
    "addresses of special blocks, in all their forms": (ADDRESSES, ADDRESSES),
    "envelopes and bytes in a queue of Redis": (ENVELOPES, ENVELOPES),
    "messages over Celery and RabbitMQ that are none": (MESSAGES, MESSAGES),
    "tokens with odd claims": (len(test_gateway.ODD_CLAIMS), len(test_gateway.ODD_CLAIMS)),
    "foreign origins": (len(test_gateway.ELSEWHERE), len(test_gateway.ELSEWHERE)),
    "requests made from the API's description, at least": (test_openapi.AT_LEAST, test_openapi.AT_LEAST_LONG),
}


@pytest.mark.parametrize("area", COUNTED)
def test_the_page_tells_how_many_attempts_there_are(area: str) -> None:
    told = {
        row["area"]: tuple(int(row[each].replace(",", "")) for each in ("short", "long"))
        for row in ROW.finditer(PAGE)
    }

    assert told[area] == COUNTED[area]
    assert set(told) == set(COUNTED)
