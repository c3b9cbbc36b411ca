"""The name of a downloaded file, which may come from a domain's data (RS-5)."""

from __future__ import annotations

import pytest

from gateway.routes.read_models import attach


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("airports.csv", 'attachment; filename="airports.csv"'),
        ("Zürich 2.csv", "attachment; filename*=UTF-8''Z%C3%BCrich%202.csv"),
        ('a"; x="b.csv', "attachment; filename*=UTF-8''a%22%3B%20x%3D%22b.csv"),
        ("a\r\nSet-Cookie: b.csv", "attachment; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20b.csv"),
    ],
)
def test_a_name_ends_no_header(name: str, header: str) -> None:
    assert attach(name) == header
