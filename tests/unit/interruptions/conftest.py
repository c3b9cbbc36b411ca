"""The domain of the interrupted conversations."""

from __future__ import annotations

import pytest

from tests.unit.interruptions.setting import write_mailroom


@pytest.fixture(scope="module")
def mailroom(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a mailroom whose parcels start with a call without side effects."""
    return str(write_mailroom(tmp_path_factory.mktemp("mailroom")))
