"""Documents in a domain's folder, uploaded only for a private chat with a model (CO-4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parley.domain_documents import add_documents

MODEL = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


class Gateway:
    """A gateway whose documents become searchable after two requests."""

    def __init__(self) -> None:
        self.added: list[dict[str, Any]] = []
        self.asked = 0

    def add_document(self, text: str, **more: Any) -> None:
        self.added.append({"text": text, **more})

    def documents(self, *, domain: str) -> list[dict[str, Any]]:
        self.asked += 1
        status = "stored" if self.asked < 3 else "embedded"
        return [{"status": status} for one in self.added if one["domain"] == domain]


@pytest.fixture
def domain(tmp_path: Path) -> str:
    (tmp_path / "clinic" / "documents").mkdir(parents=True)
    (tmp_path / "clinic" / "ontology.yaml").touch()
    (tmp_path / "clinic" / "documents" / "house_rules.md").write_text("# Dogs\n\nNo dogs.")
    return str(tmp_path / "clinic")


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PARLEY_MODEL", "PARLEY_MODEL_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


def test_documents_are_uploaded_and_searchable_before_the_chat(
    domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, said = Gateway(), list[str]()
    for name, value in MODEL.items():
        monkeypatch.setenv(name, value)

    add_documents(gateway, domain, said.append)  # type: ignore[arg-type]

    assert gateway.added == [{"text": "# Dogs\n\nNo dogs.", "title": "House rules", "domain": "clinic"}]
    assert gateway.asked == 3
    assert said == ["Documents: House rules."]


def test_without_a_model_nothing_is_uploaded(domain: str) -> None:
    gateway = Gateway()

    add_documents(gateway, domain, print)  # type: ignore[arg-type]

    assert gateway.added == []
