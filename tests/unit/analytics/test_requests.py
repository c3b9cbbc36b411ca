"""NL-2, NL-4: what people ordinarily type over the tables is read without a model."""

from __future__ import annotations

import pytest

from tests.unit.analytics.asking import Request, faults, read_requests


@pytest.mark.parametrize("request_", read_requests("requests.yaml"), ids=lambda request: request.say)
def test_a_request_is_read_as_it_is_meant(request_: Request) -> None:
    """NL-2: flow and slots, by the catalogue's names and the grammar of such requests."""
    assert faults(request_) == []
