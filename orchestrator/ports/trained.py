"""Where models that were trained are kept from one process to the next. Losing one costs its training."""

from __future__ import annotations

from typing import Protocol


class TrainedModels(Protocol):
    """Contents by key. A key names everything that determines its content, so nothing is ever changed."""

    def get(self, key: str) -> bytes | None:
        """What was put; None when there is nothing, or nothing that may be trusted."""
        ...

    def put(self, key: str, content: bytes) -> None:
        """Keep a content, whole or not at all; where nothing can be kept, nothing happens."""
        ...
