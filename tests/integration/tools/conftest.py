"""Servers for HTTP tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.tools.web import Web
from tests.processes.http import serve


@pytest.fixture(scope="module")
def served_web() -> Iterator[Web]:
    web = Web()
    with serve(web.application()) as web.url:
        yield web


@pytest.fixture
def web(served_web: Web) -> Web:
    """Return the module's server without recorded requests."""
    served_web.forget()
    return served_web
