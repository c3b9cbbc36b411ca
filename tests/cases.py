"""Cases of one behavior that run as one test, because a test for each costs more than most cases do."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, Self, TypeVar

from _pytest.mark import ParameterSet

T = TypeVar("T")
_LONGEST_LABEL: Final = 120


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], *, ids: object = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run the test once for each case, with the arguments that `pytest.mark.parametrize` would pass.

    All cases run even if some fail, and the failures name their cases. The cases share the test's fixtures, so use it
    only where a case leaves nothing behind. `ids`: a label for each case, or a function of a value.
    """
    parts = tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else tuple(names)
    given = list(cases)
    rows = [_values(case, is_alone=isinstance(names, str) and len(parts) == 1) for case in given]
    arguments = [dict(zip(parts, row, strict=True)) for row in rows]
    labels = list(_labels(given, rows, ids))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)
        outer = [each for name, each in signature.parameters.items() if name not in parts]
        assert len(outer) + len(parts) == len(signature.parameters)

        @wraps(test)
        def run(**fixtures: Any) -> None:
            with _Failures(labels) as failures:
                for label, own in zip(labels, arguments, strict=True):
                    with failures.of(label):
                        test(**fixtures, **own)

        @wraps(test)
        async def run_async(**fixtures: Any) -> None:
            with _Failures(labels) as failures:
                for label, own in zip(labels, arguments, strict=True):
                    with failures.of(label):
                        await test(**fixtures, **own)

        chosen: Any = run_async if inspect.iscoroutinefunction(test) else run
        chosen.__signature__ = signature.replace(parameters=outer)
        return chosen

    return decorate


async def check_each(check: Callable[[T], Awaitable[None]], cases: Sequence[T]) -> None:
    """Await the check of every case, even if some fail."""
    with _Failures(cases) as failures:
        for case in cases:
            with failures.of(str(case)):
                await check(case)


class _Failures:
    """The failed cases, raised together at the end."""

    def __init__(self, cases: Sequence[object]) -> None:
        assert cases, "There are no cases."
        self._count = len(cases)
        self._found: list[Exception] = []

    @contextmanager
    def of(self, label: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the next cases run, too
            error.add_note(f"Case: {label if len(label) <= _LONGEST_LABEL else f'{label[:_LONGEST_LABEL]}…'}")
            self._found.append(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and len(self._found) == 1:
            raise self._found[0]
        if kind is None and self._found:
            raise ExceptionGroup(f"{len(self._found)} of {self._count} cases failed", self._found)


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
        yield str(label or own or ", ".join(values))
