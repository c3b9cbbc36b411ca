"""The process that runs one model-written function. A bare interpreter is started with this file.

The process reads one JSON request, drops its rights, calls the function, writes one JSON response and exits.
It imports only the standard library, and trusts no input, not even code that the guardrails have approved.
"""

import importlib
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # the interpreter's path does not include this folder

from isolation import answer, isolate, serve, stopped

OWN_NAME = "sandboxed"

# Events that harmless code triggers. For example, namedtuple evaluates a template and looks up its caller.
HARMLESS_EVENTS = frozenset({"exec", "compile", "sys._getframe", "sys._getframemodulename", "builtins.id"})

# Modules that other modules import on first use. Load them before isolation, because imports fail afterward.
LOADED_LATE = {
    "datetime": ("_strptime", "time"),
    "json": ("json.decoder", "json.encoder"),
    "random": ("hashlib",),
    "time": ("_strptime",),
}

BUILTIN_NAMES = """abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float format
frozenset hash hex int isinstance issubclass iter len list map max min next oct ord pow range repr reversed round
set slice sorted str sum tuple zip True False None
Exception ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError
NotImplementedError OverflowError RuntimeError StopIteration TypeError ValueError ZeroDivisionError"""


def watch_events() -> None:
    """Permanently install an audit hook that ends the process at the first event that is not harmless."""
    end, reply = os._exit, answer

    def watch(event: str, arguments: tuple[object, ...], harmless: frozenset[str] = HARMLESS_EVENTS) -> None:
        # Error handling inspects frames and namedtuple sets defaults, but code never needs to replace code objects.
        reflects = event in {"object.__getattr__", "object.__setattr__"} and arguments[1] != "__code__"
        if event not in harmless and not reflects:
            reply({"stopped": "forbidden", "message": f"The code tried to use {event}."})
            end(0)

    sys.addaudithook(watch)


def make_facade(name: str) -> types.SimpleNamespace:
    """Return a namespace with a module's public names, except the modules that it imports."""
    module = importlib.import_module(name)
    names: list[str] = getattr(module, "__all__", None) or [key for key in dir(module) if key[0] != "_"]
    public = {key: getattr(module, key) for key in names}
    return types.SimpleNamespace(
        **{key: value for key, value in public.items() if not isinstance(value, types.ModuleType)}
    )


class NotAllowed(Exception):
    """Raised for a rejected import. Not an ImportError, which the code might catch."""


def load_late(names: list[str]) -> dict[str, types.SimpleNamespace]:
    """Load the modules that the named modules import on first use.

    Return an empty substitute for each loaded module. Model-written code gets the substitutes; the standard
    library finds the real modules in `sys.modules`.
    """
    late = [module for name in names for module in LOADED_LATE.get(name, ())]
    for module in late:
        importlib.import_module(module)
    for codec in ("ascii", "latin-1"):
        "".encode(codec)
    return {module: types.SimpleNamespace() for module in late}


def make_builtins(modules: dict[str, types.SimpleNamespace]) -> dict[str, Any]:
    def import_name(name: str, _g: Any = None, _l: Any = None, _from: Any = (), level: int = 0) -> Any:
        if level or name not in modules:
            raise NotAllowed(f"The code tried to import {name}.")
        return modules[name]

    source = vars(importlib.import_module("builtins"))
    return {**{name: source[name] for name in BUILTIN_NAMES.split()}, "__import__": import_name}


def is_own(value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == OWN_NAME


def run(request: dict[str, Any], code: types.CodeType, builtins: dict[str, Any]) -> str:
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": OWN_NAME}
    exec(code, space)  # noqa: S102 - this process exists to run this code in isolation
    functions = [value for value in space.values() if is_own(value)]
    if len(functions) != 1:
        return stopped("error", "The code does not define exactly one function.")
    result = json.dumps(functions[0](**request["arguments"]), allow_nan=False)
    if len(result) > request["limits"]["output_bytes"]:
        return stopped("output_too_large", f"The result has {len(result)} bytes as JSON; return less.")
    return f'{{"returned": {result}}}'


def describe(error: BaseException) -> str:
    place, line = error.__traceback__, 0
    while place is not None:
        if place.tb_frame.f_code.co_filename == "<function>":
            line = place.tb_lineno
        place = place.tb_next
    where = f" on line {line}" if line else ""
    return f"{type(error).__name__}{where}: {str(error)[:500]}"


def attempt(request: dict[str, Any]) -> str:
    names: list[str] = request["imports"]
    builtins = make_builtins({**load_late(names), **{name: make_facade(name) for name in names}})
    try:
        code = compile(request["source"], "<function>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        return stopped("error", f"The code cannot be compiled: {error}")
    if not isolate(request):
        return stopped("unavailable", "This system can't isolate processes from the network.")
    if "events" not in request["without"]:
        watch_events()
    try:
        return run(request, code, builtins)
    except MemoryError:
        pass  # the code's objects are freed only when this block ends
    except NotAllowed as error:
        return stopped("forbidden", str(error))
    except BaseException as error:  # noqa: BLE001 - any error in the code is a result
        return stopped("error", describe(error))
    return stopped("memory", "The code exceeded its memory limit.")


if __name__ == "__main__":
    serve(attempt)
