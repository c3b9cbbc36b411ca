"""Metrics of dropped messages by Parley's queues, not by senders' names (RT-22)."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from prometheus_client import REGISTRY

from workers.messages import refused


@pytest.mark.parametrize(
    ("queue", "label"), [("turns", "turns"), ("a name of the sender's", "unknown"), (None, "unknown")]
)
def test_the_label_of_a_dropped_message(
    queue: str | None, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count() -> float:
        return REGISTRY.get_sample_value("parley_messages_refused_total", {"queue": label}) or 0.0

    monkeypatch.setattr(refused, "current_app", SimpleNamespace(backend=MagicMock()))
    before = count()

    refused.note_refused("A malformed message was dropped.", queue, "body")

    assert count() == before + 1
