"""What tools over HTTP are called at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.tools.web import Web, serve


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    with serve(web.application()) as web.url:
        yield web
