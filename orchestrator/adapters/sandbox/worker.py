"""The process that runs one function a model wrote; started by file, by a bare interpreter.

Imports the standard library only. It reads one JSON request, gives up every right it has, calls
the function, writes one JSON answer and ends. It trusts nothing it was sent: what the guardrails
have checked is not taken for granted here.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import sys
import types
from typing import Any

NOBODY = 65534
CLONE_NEWNET = 0x40000000
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_KILL_PROCESS = 0x80000000
SECCOMP_RET_ALLOW = 0x7FFF0000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
SIGKILL = 9
OWN_NAME = "sandboxed"
OUT_OF_MEMORY = 3
"""The exit code when there is not even memory left to say so."""

SYSTEM_CALLS = {
    "x86_64": (
        0xC000003E,
        (0, 1, 9, 10, 11, 12, 13, 14, 15, 25, 28, 60, 231, 202, 24, 219, 228, 96, 318),
    ),
    "aarch64": (
        0xC00000B7,
        (63, 64, 222, 226, 215, 214, 134, 135, 139, 216, 233, 93, 94, 98, 124, 128, 113, 169, 278),
    ),
}
"""By machine: its number in `seccomp_data.arch`, and the numbers of the only calls that stay allowed.

These are read, write, mmap, mprotect, munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn, mremap,
madvise, exit, exit_group, futex, sched_yield, restart_syscall, clock_gettime, gettimeofday, getrandom.
"""

# Events that harmless code causes: namedtuple evaluates a template and looks for its caller's name.
HARMLESS_EVENTS = frozenset({"exec", "compile", "sys._getframe", "sys._getframemodulename", "builtins.id"})

# What modules load only when first used; afterwards nothing can be loaded any more.
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


class Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction)))


def leave_network(libc: Any) -> bool:
    """A network namespace of its own has no interface up; needs root or a user namespace."""
    return libc.unshare(CLONE_NEWNET) == 0 or libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0


def drop_identity() -> None:
    """Root would not be bound by the limits; where the identity cannot change it holds no rights anyway."""
    if os.getuid() != 0:
        return
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    except OSError:  # a user namespace without that identity
        return


def set_limits(limits: dict[str, int]) -> None:
    bounds = {
        resource.RLIMIT_AS: limits["memory_bytes"],
        resource.RLIMIT_CPU: limits["cpu_s"],
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: 3,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in bounds.items():
        _, hard = resource.getrlimit(kind)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # At the hard limit of processor time comes SIGKILL, which does not say why.
        final = hard if kind == resource.RLIMIT_CPU else bound
        resource.setrlimit(kind, (bound, final))


def filter_system_calls(libc: Any) -> bool:
    """From here on the kernel ends the process at any call that is not in the table."""
    machine = os.uname().machine
    if machine not in SYSTEM_CALLS:
        return False
    architecture, allowed = SYSTEM_CALLS[machine]
    last = len(allowed)
    code = [
        (LOAD_WORD, 0, 0, 4),  # seccomp_data.arch
        (JUMP_IF_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, SECCOMP_RET_KILL_PROCESS),
        (LOAD_WORD, 0, 0, 0),  # seccomp_data.nr
        *((JUMP_IF_EQUAL, last - at, 0, number) for at, number in enumerate(allowed)),
        (RETURN, 0, 0, SECCOMP_RET_KILL_PROCESS),
        (RETURN, 0, 0, SECCOMP_RET_ALLOW),
    ]
    program = Program(len(code), (Instruction * len(code))(*(Instruction(*step) for step in code)))
    return libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0) == 0


def watch_events() -> None:
    """End the process at the first event of the interpreter that reaches outside. Cannot be undone."""
    end, reply = os._exit, answer

    def watch(event: str, arguments: tuple[object, ...], harmless: frozenset[str] = HARMLESS_EVENTS) -> None:
        # Errors look at frames and namedtuple sets defaults; nobody has to exchange code.
        reflects = event in {"object.__getattr__", "object.__setattr__"} and arguments[1] != "__code__"
        if event not in harmless and not reflects:
            reply({"stopped": "forbidden", "message": f"The code tried to use {event}."})
            end(0)

    sys.addaudithook(watch)


def make_facade(name: str) -> types.SimpleNamespace:
    """A module's own public names, without the modules that it has imported."""
    module = importlib.import_module(name)
    names: list[str] = getattr(module, "__all__", None) or [key for key in dir(module) if key[0] != "_"]
    public = {key: getattr(module, key) for key in names}
    return types.SimpleNamespace(
        **{key: value for key, value in public.items() if not isinstance(value, types.ModuleType)}
    )


class NotAllowed(Exception):
    """Not an ImportError, which code may expect."""


def load_late(names: list[str]) -> dict[str, types.SimpleNamespace]:
    """Load what would be loaded later. The interpreter takes it from its own table; code gets nothing."""
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


def answer(body: dict[str, Any], encode: Any = json.dumps, write: Any = os.write) -> None:
    send(encode(body), write)


def send(text: str, write: Any = os.write) -> None:
    data = text.encode()
    while data:
        data = data[write(1, data) :]


def isolate(request: dict[str, Any]) -> bool:
    """Give up rights, in the order in which it is possible. False: the network is still there."""
    libc = ctypes.CDLL(None)
    libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    without: list[str] = request["without"]
    network = "network" not in without and leave_network(libc)
    drop_identity()
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    set_limits(request["limits"])
    calls = "calls" not in without and filter_system_calls(libc)
    if "events" not in without:
        watch_events()
    return network or calls


def is_own(value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == OWN_NAME


def run(request: dict[str, Any], code: types.CodeType, builtins: dict[str, Any]) -> str:
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": OWN_NAME}
    exec(code, space)  # noqa: S102 - to do this apart from everything else is what this process is for
    functions = [value for value in space.values() if is_own(value)]
    if len(functions) != 1:
        return stopped("error", "The code does not define exactly one function.")
    result = json.dumps(functions[0](**request["arguments"]), allow_nan=False)
    if len(result) > request["limits"]["output_bytes"]:
        return stopped("output_too_large", f"The result has {len(result)} bytes as JSON.")
    return f'{{"returned": {result}}}'


def stopped(category: str, message: str) -> str:
    return json.dumps({"stopped": category, "message": message})


def describe(error: BaseException) -> str:
    place, line = error.__traceback__, 0
    while place is not None:
        if place.tb_frame.f_code.co_filename == "<function>":
            line = place.tb_lineno
        place = place.tb_next
    where = f" in line {line}" if line else ""
    return f"{type(error).__name__}{where}: {str(error)[:500]}"


def attempt(request: dict[str, Any]) -> str:
    names: list[str] = request["imports"]
    builtins = make_builtins({**load_late(names), **{name: make_facade(name) for name in names}})
    try:
        code = compile(request["source"], "<function>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        return stopped("error", f"The code cannot be compiled: {error}")
    if not isolate(request):
        return stopped("unavailable", "This system lets no process give up the network.")
    try:
        return run(request, code, builtins)
    except MemoryError:
        pass  # what the code holds is let go only after this block
    except NotAllowed as error:
        return stopped("forbidden", str(error))
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its result
        return stopped("error", describe(error))
    return stopped("memory", "The code used more memory than it may.")


def main() -> None:
    try:
        send(attempt(json.loads(sys.stdin.buffer.read())))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(0)


if __name__ == "__main__":
    main()
