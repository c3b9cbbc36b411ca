"""Every documentation page is linked from the README, and no link is broken."""

from __future__ import annotations

import re
from pathlib import Path

from parley.reference_pages import PAGES
from tests.shape.sources import REPOSITORY, files, name_of

START = REPOSITORY / "README.md"
MOST_WORDS = 32_000  # by hand, without code
NOT_BY_HAND = {*PAGES, "requirements.md"}
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def links_of(page: Path) -> list[tuple[Path, str]]:
    """List the link targets of a page within the repository: file and fragment."""
    found = LINK.findall(page.read_text(encoding="utf-8"))
    return [((page.parent / target).resolve() if target else page, part) for target, part in found]


def parts_of(page: Path) -> set[str]:
    """List the anchors of a page's headings."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    broken = [
        f"{name_of(page)}: {target}#{part}"
        for page in files()
        if page.suffix == ".md" and "scaffold" not in page.parts
        for target, part in links_of(page)
        if not target.exists() or (part and target.suffix == ".md" and part not in parts_of(target))
    ]

    assert not broken


def test_every_page_is_found_from_the_readme() -> None:
    seen, ahead = set[Path](), [START]
    while ahead:
        page = ahead.pop()
        if page in seen:
            continue
        seen.add(page)
        if page.is_dir():
            ahead += sorted(page.glob("*.md"))
        elif page.suffix == ".md":
            ahead += [target for target, _ in links_of(page)]

    lost = {name_of(page) for page in files("docs") if page.suffix == ".md" and page not in seen}
    assert not lost


def test_every_page_is_in_the_sites_navigation() -> None:
    navigation = re.findall(r"[\w-]+\.md", (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))

    assert sorted(navigation) == sorted(page.name for page in (REPOSITORY / "docs").glob("*.md"))


def test_the_documentation_stays_short() -> None:
    pages = [START, *(page for page in (REPOSITORY / "docs").glob("*.md") if page.name not in NOT_BY_HAND)]
    prose = [re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE) for page in pages]

    assert sum(len(text.split()) for text in prose) <= MOST_WORDS


def test_the_code_in_the_readme_is_the_tutorials() -> None:
    """The tutorial's blocks are run by a test."""
    pages = sorted((REPOSITORY / "docs").glob("tutorial*.md"))
    tutorial = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    blocks = re.findall(
        r"^```(?:yaml|python)\n(.*?)^```", START.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )

    assert len(blocks) == 3
    assert [line for block in blocks for line in block.splitlines() if line not in tutorial] == []
