"""The reference of settings says what the code says."""

from __future__ import annotations

from pathlib import Path

from orchestrator.settings import Settings
from parley.settings_page import describe_fields, make_page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "settings.md"


def test_the_page_is_what_the_code_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == make_page(), "stale: run `make docs`"


def test_every_variable_of_the_environment_is_on_it() -> None:
    page = make_page()
    for field in Settings.model_fields.values():
        assert f"| `{field.alias}` |" in page


def test_what_stands_under_a_setting_describes_it() -> None:
    assert describe_fields(Settings)["broker_url"].startswith("Celery's broker")
