"""The domain in which is interrupted."""

from __future__ import annotations

import pytest

from tests.unit.interruptions.setting import write_mailroom


@pytest.fixture(scope="module")
def mailroom(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The mailroom whose parcels begin with a call that changes nothing."""
    return str(write_mailroom(tmp_path_factory.mktemp("mailroom")))
