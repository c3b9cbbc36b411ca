"""The inspector meets the WCAG 2.2 rules for contrast, names, roles and order, as axe checks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.steps import PANELS, Visit

SIZES = {"desk": (1440, 900), "telephone": (390, 780)}
AXE = Axe()
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
"""WCAG 2.2, levels A and AA."""
EVERY_RULE: dict[str, Any] = {"runOnly": LEVELS}
COLOURS: dict[str, Any] = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""All properties that can differ between dark and light."""
PLACES: dict[str, Any] = {**EVERY_RULE, "rules": {"color-contrast": {"enabled": False}}}
"""All properties that can differ between phone and desktop."""


SPOILING = """() => {
    const pale = document.createElement('p');
    pale.append('Pale');
    pale.style.cssText = 'color: #ccc; background: #fff';
    document.body.append(pale, document.createElement('button'));
}"""


@pytest.mark.parametrize(
    ("size", "theme", "rules", "found_by_them"),
    [
        pytest.param("desk", "light", EVERY_RULE, {"color-contrast", "button-name"}, id="desk-light"),
        pytest.param("desk", "dark", COLOURS, {"color-contrast"}, id="desk-dark", marks=pytest.mark.slow),
        pytest.param(
            "telephone", "light", PLACES, {"button-name"}, id="telephone-light", marks=pytest.mark.slow
        ),
        pytest.param(
            "telephone",
            "dark",
            EVERY_RULE,
            {"color-contrast", "button-name"},
            id="telephone-dark",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_nothing_breaks_the_rules_of_wcag_aa(
    visit: Callable[..., Visit], size: str, theme: str, rules: dict[str, Any], found_by_them: set[str]
) -> None:
    """Checks by axe; nothing is wider than the page, and no other host is contacted.

    A page with an added error shows that the rules are applied.
    """
    width, height = SIZES[size]
    here = visit(viewport={"width": width, "height": height}, color_scheme=theme).new_session("gallery")
    page = here.page
    here.say("register a guest", "I need a few things to register a guest")
    page.evaluate(AXE.axe_script)
    found = {"chat": violations(page, rules)}
    if size == "telephone":
        page.get_by_role("button", name="Inspector", exact=True).click()
    for name in PANELS:
        expect(here.panel(name).locator(":scope > *").first).to_be_visible()
        found[name] = violations(page, rules, "#tabs", "[role=tabpanel]:not([hidden])")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    if size == "telephone":
        page.get_by_role("button", name="Sessions", exact=True).click()
        found["sessions"] = violations(page, rules, "nav")
    page.keyboard.press("?")
    found["help"] = violations(page, rules, "dialog")
    assert {place: wrong for place, wrong in found.items() if wrong} == {}

    page.keyboard.press("Escape")
    page.evaluate(SPOILING)
    assert {
        wrong.split(":")[0] for wrong in violations(page, rules, "body > p, body > button")
    } == found_by_them


def violations(page: Page, rules: dict[str, Any], *parts: str) -> list[str]:
    """Return axe's violations in a page, or in these parts of a page."""
    given = [list(parts or ["html"]), {**rules, "resultTypes": ["violations"]}]
    found = page.evaluate(
        "([parts, rules]) => axe.run({include: parts}, rules).then((all) => all.violations)", given
    )
    return [
        f"{rule['id']}: {node['html'][:120]} {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]
