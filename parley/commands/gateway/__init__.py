"""Common options, client and output of commands that call the gateway."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import typer

from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.connection import connect
from parley.output import print_result

_COMMON = (
    Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson),
    Parameter("url", Parameter.KEYWORD_ONLY, default=None, annotation=Url),
    Parameter("data_dir", Parameter.KEYWORD_ONLY, default=DEFAULT_DATA_DIR, annotation=DataDir),
)


def gateway_command(app: typer.Typer, name: str | None = None) -> Callable[..., Any]:
    """Return a decorator that registers a function as a command with ``--json``, ``--url`` and ``--data-dir``.

    The function takes a client and options, and returns a value for `print_result`.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(**options: Any) -> None:
            as_json, url, data_dir = (options.pop(parameter.name) for parameter in _COMMON)
            with connect(url, data_dir) as client:
                print_result(function(client, **options), as_json=as_json)

        _client, *own = signature(function, eval_str=True).parameters.values()
        parameters = [*(one.replace(kind=Parameter.KEYWORD_ONLY) for one in own), *_COMMON]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        command.__signature__ = Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        app.command(name)(command)
        return function

    return register
