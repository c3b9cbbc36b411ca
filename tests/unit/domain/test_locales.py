"""RT-29: known time zones and locales, and their formats."""

from __future__ import annotations

from datetime import date, time

import pytest

from orchestrator.domain.locales import Separators, check_locale, check_timezone, forms_of, separators_of
from tests.cases import for_each

DAY = date(2026, 11, 27)


@for_each("name", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3"])
def test_zones_of_the_database_are_known(name: str) -> None:
    assert check_timezone(name) == name


@for_each(
    "name",
    [
        "",
        "europe/berlin",
        "Europe",
        "../etc/passwd",
        "/etc/localtime",
        "localtime",
        "GMT+25",
        "CEST",
        "a\x00b",
    ],
)
def test_other_names_are_not(name: str) -> None:
    with pytest.raises(ValueError, match="is not a time zone"):
        check_timezone(name)


@for_each(
    ("tag", "usual"),
    [("de-DE", "de-DE"), ("de_de", "de-DE"), ("pt-br", "pt-BR"), ("en", "en"), ("zh-Hant-TW", "zh-Hant-TW")],
)
def test_a_locale_has_one_spelling(tag: str, usual: str) -> None:
    assert check_locale(tag) == usual


@for_each("tag", ["", "xx", "de-XX", "../etc", "english", "de-DE-x-secret", "-"])
def test_unknown_locales_are_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="is not a locale"):
        check_locale(tag)


@for_each(
    ("tag", "money", "whole", "number", "clock", "day"),
    [
        ("en-US", "€1,234.50", "€40,000", "1,234.5", "3:40 PM", "Friday, November 27"),
        ("en-GB", "€1,234.50", "€40,000", "1,234.5", "15:40", "Friday 27 November"),
        ("de-DE", "1.234,50 €", "40.000 €", "1.234,5", "15:40", "Friday, 27 November"),
        ("de-CH", "EUR 1'234.50", "EUR 40'000", "1'234.5", "15:40", "Friday, 27 November"),
        ("fr-FR", "1 234,50 €", "40 000 €", "1 234,5", "15:40", "Friday 27 November"),
        ("pt-BR", "€ 1.234,50", "€ 40.000", "1.234,5", "15:40", "Friday 27 November"),
    ],
)
def test_forms_in_english_answers(
    tag: str, money: str, whole: str, number: str, clock: str, day: str
) -> None:
    forms = forms_of(tag, "en")

    written = [
        forms.money(1234.5, "EUR"),
        forms.money(40000, "EUR"),
        forms.number(1234.5),
        forms.time(time(15, 40)),
    ]
    plain = [text.replace("\xa0", " ").replace("\u202f", " ") for text in written]
    assert plain == [money, whole, number, clock]
    assert forms.day(DAY, year=False).replace(",", "") == day.replace(",", "")
    assert forms.day(DAY, year=True).endswith("2026")


@pytest.mark.parametrize(
    ("tag", "language", "day"),
    [
        ("de-DE", "de", "Freitag, 27. November"),
        ("es-ES", "es", "viernes, 27 de noviembre"),
        ("en-US", "de", "Freitag, 27. November"),
    ],
)
def test_days_have_names_of_the_answers_language(tag: str, language: str, day: str) -> None:
    assert forms_of(tag, language).day(DAY, year=False) == day


@for_each(
    ("tag", "decimal", "group"),
    [(None, ".", ","), ("en-IN", ".", ","), ("de-DE", ",", "."), ("de-CH", ".", "'")],
)
def test_what_numbers_are_read_with(tag: str | None, decimal: str, group: str) -> None:
    assert separators_of(tag) == Separators(decimal, group)
