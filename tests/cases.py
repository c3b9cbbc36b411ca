"""Cases of one behavior as subtests, because a test for each costs more than most cases do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet

_LONGEST_LABEL: Final = 120


def parts(text: str) -> list[str]:
    """Return the texts between bars with spaces around them."""
    return [part.strip() for part in re.split(r"\s\|\s", text)]


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], *, ids: object = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a subtest for each case, with the arguments that `pytest.mark.parametrize` would pass.

    All cases run even if some fail. The cases share the test's fixtures, so use it only where a case leaves nothing
    behind. `ids`: a label for each case, or a function of a value.
    """
    named = tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else tuple(names)
    given = list(cases)
    assert given, "There are no cases."
    rows = [_values(case, is_alone=isinstance(names, str) and len(named) == 1) for case in given]
    labels = list(_labels(given, rows, ids))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)
        fixtures = {name: one for name, one in signature.parameters.items() if name not in named}
        assert len(fixtures) + len(named) == len(signature.parameters)

        def split(given: dict[str, Any]) -> tuple[pytest.Subtests, Iterator[tuple[str, dict[str, Any]]]]:
            """Return the subtests, and the label and arguments of each case."""
            shared = {name: one for name, one in given.items() if name in fixtures}
            arguments = ({**shared, **dict(zip(named, row, strict=True))} for row in rows)
            return given["subtests"], zip(labels, arguments, strict=True)

        @wraps(test)
        def run(**given: Any) -> None:
            subtests, each = split(given)
            for label, arguments in each:
                with subtests.test(label):
                    test(**arguments)

        @wraps(test)
        async def run_async(**given: Any) -> None:
            subtests, each = split(given)
            for label, arguments in each:
                with subtests.test(label):
                    await test(**arguments)

        chosen: Any = run_async if inspect.iscoroutinefunction(test) else run
        subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = {"subtests": subtests, **fixtures}
        chosen.__signature__ = signature.replace(parameters=list(parameters.values()))
        return chosen

    return decorate


def _values(case: Any, *, is_alone: bool) -> tuple[Any, ...]:
    if isinstance(case, ParameterSet):
        assert not case.marks, "A case of several in one test cannot be marked."
        return tuple(case.values)
    return (case,) if is_alone else tuple(case)


def _labels(cases: list[Any], rows: list[tuple[Any, ...]], ids: Any) -> Iterator[str]:
    chosen = [None] * len(cases) if ids is None or callable(ids) else list(ids)
    for case, row, label in zip(cases, rows, chosen, strict=True):
        own = case.id if isinstance(case, ParameterSet) else None
        values = (str((callable(ids) and ids(value)) or repr(value)) for value in row)
        text = str(label or own or ", ".join(values))
        yield text if len(text) <= _LONGEST_LABEL else f"{text[:_LONGEST_LABEL]}…"
