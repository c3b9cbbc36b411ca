"""Time zones and locales: valid names, and formats of numbers, times and dates.

Names of days and months are in the answer's language. The locale determines only their order.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, time
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final
from zoneinfo import available_timezones

if TYPE_CHECKING:
    from babel import Locale

_YEAR: Final = re.compile(r"(?:[\s,]|'[^']*'(?=\s*y))*y+")
_NOT_FOR_USERS: Final = frozenset({"localtime", "Factory", "posixrules"})
"""Entries in the time zone database that are not places."""


@cache
def timezone_names() -> frozenset[str]:
    """Return the names of the time zones that users can choose, from the IANA database."""
    return frozenset(available_timezones() - _NOT_FOR_USERS)


def check_timezone(name: str) -> str:
    """Return the name if it is a time zone in the IANA database. Raises ValueError if it isn't."""
    if name not in timezone_names():
        raise ValueError("is not a time zone; use an IANA name such as Europe/Berlin")
    return name


def check_locale(tag: str) -> str:
    """Return a locale tag in canonical form, such as ``de-DE``. Raises ValueError if the locale is unknown."""
    from babel import UnknownLocaleError  # noqa: PLC0415  # few users set a locale

    try:
        return str(_parse(tag)).replace("_", "-")
    except (ValueError, TypeError, UnknownLocaleError) as error:
        raise ValueError("is not a locale; use a language tag such as en-GB or de-DE") from error


@cache
def locale_tags() -> frozenset[str]:
    from babel.localedata import locale_identifiers  # noqa: PLC0415

    return frozenset(check_locale(name) for name in locale_identifiers() if name != "root")


@dataclass(frozen=True, slots=True)
class Separators:
    """A locale's number separators. For ``1.234,5``, `decimal` is ``,`` and `group` is ``.``."""

    decimal: str
    group: str


class LocaleForms:
    """Formats of numbers, amounts, times and dates in one locale, with month and day names in one language.

    `tag`: a locale tag such as ``de-DE``. `language`: the ISO 639-1 code of the answer's language.
    """

    def __init__(self, tag: str, language: str) -> None:
        self.language = language
        self._numbers = _parse(tag)
        self._words = _with_words(self._numbers, language)

    @cached_property
    def separators(self) -> Separators:
        from babel.numbers import get_decimal_symbol, get_group_symbol  # noqa: PLC0415

        return Separators(get_decimal_symbol(self._numbers), get_group_symbol(self._numbers))

    def number(self, value: float) -> str:
        from babel.numbers import format_decimal  # noqa: PLC0415

        return format_decimal(value, locale=self._numbers)

    def money(self, value: float, currency: str) -> str:
        """Format an amount with two decimals, or without decimals if it is an integer.

        `currency`: an ISO 4217 code, or an empty string for an amount without currency.
        """
        from babel.numbers import format_currency, format_decimal  # noqa: PLC0415

        is_whole = float(value).is_integer()
        if not currency:
            return format_decimal(value, format="#,##0" if is_whole else "#,##0.00", locale=self._numbers)
        pattern: str = self._numbers.currency_formats["standard"].pattern
        pattern = pattern.replace("0.00", "0") if is_whole else pattern
        return format_currency(value, currency, format=pattern, currency_digits=False, locale=self._numbers)

    def time(self, value: time) -> str:
        """Format a time of day on the locale's 12- or 24-hour clock."""
        from babel.dates import format_time  # noqa: PLC0415

        pattern: str = self._numbers.time_formats["short"].pattern
        return format_time(value, "h:mm a" if "a" in pattern else "HH:mm", locale=self._words)

    def month(self, value: int) -> str:
        """Return the name of a month from 1 to 12."""
        from babel.dates import get_month_names  # noqa: PLC0415

        return get_month_names("wide", "stand-alone", self._words)[value]

    def day(self, value: date, *, year: bool) -> str:
        """Format a day with its weekday, and optionally its year."""
        from babel.dates import format_date  # noqa: PLC0415

        pattern: str = self._words.date_formats["full"].pattern
        return format_date(value, pattern if year else _YEAR.sub("", pattern), locale=self._words)


def _parse(tag: str) -> Locale:
    from babel import Locale  # noqa: PLC0415

    return Locale.parse(tag.replace("-", "_"))


def _with_words(numbers: Locale, language: str) -> Locale:
    """Return the locale for names in `language`, with the `numbers` locale's territory if possible.

    Fall back to `numbers` if the language is unknown.
    """
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415

    if numbers.language == language:
        return numbers
    for tag in (f"{language}_{numbers.territory}", f"{language}_001", language):
        try:
            return Locale.parse(tag)
        except (UnknownLocaleError, ValueError):
            continue
    return numbers


@cache
def forms_of(tag: str, language: str) -> LocaleForms:
    return LocaleForms(tag, language)


def forms_for(locale: str | None, language: str) -> LocaleForms | None:
    """Return a locale's formats. Default: the language's formats.

    Return None if no locale is given and the language is English or unknown.
    """
    if locale is None and (language == ENGLISH or not _is_known(language)):
        return None
    return forms_of(locale or language, language)


@cache
def _is_known(language: str) -> bool:
    try:
        check_locale(language)
    except ValueError:
        return False
    return True


def language_in_use() -> str:
    """Return the language in which the running turn answers."""
    forms = forms_in_use.get()
    return ENGLISH if forms is None else forms.language


ENGLISH: Final = "en"
forms_in_use: ContextVar[LocaleForms | None] = ContextVar("forms_in_use", default=None)
"""The formats of the running turn's answer, or None for English formats.

Set at the start of a turn, for template filters, which have no access to the turn.
"""

ENGLISH_SEPARATORS: Final = Separators(".", ",")


def separators_of(tag: str | None, language: str = ENGLISH) -> Separators:
    """Return a locale's number separators. Default: the language's separators."""
    forms = forms_for(tag, language)
    if forms is None or forms.separators == ENGLISH_SEPARATORS:
        return ENGLISH_SEPARATORS
    return forms.separators
