"""Restrictions that the SQL process imposes on itself before it runs a model-written query.

This module imports only the standard library, because sandbox processes start without the package.
"""

import ctypes
import os
import resource
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
OUT_OF_MEMORY = 3
"""Exit code of a process that has too little memory to write a response."""

SYSTEM_CALLS = {
    "x86_64": (
        0xC000003E,
        (0, 1, 9, 10, 11, 12, 13, 14, 15, 25, 28, 60, 231, 202, 24, 219, 228, 96, 318, 39, 186),
        234,
    ),
    "aarch64": (
        0xC00000B7,
        (63, 64, 222, 226, 215, 214, 134, 135, 139, 216, 233, 93, 94, 98, 124, 128, 113, 169, 278, 172, 178),
        131,
    ),
}
"""For each machine: the architecture in `seccomp_data.arch`, the permitted system calls, and `tgkill`.

The permitted calls are read, write, mmap, mprotect, munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn,
mremap, madvise, exit, exit_group, futex, sched_yield, restart_syscall, clock_gettime, gettimeofday,
getrandom, getpid and gettid. A process may send `tgkill` only to itself, which it needs for aborting when out
of memory.
"""


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
    """Enter a network namespace without active interfaces. Return False if the system doesn't allow it."""
    return libc.unshare(CLONE_NEWNET) == 0 or libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0


def drop_identity() -> None:
    """Switch from root to the `nobody` account, because root can raise its limits."""
    if os.getuid() != 0:
        return
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    except OSError:  # in a user namespace without this account, root has no rights outside the namespace
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
        # The hard CPU limit would send SIGKILL, which does not reveal the cause.
        final = hard if kind == resource.RLIMIT_CPU else bound
        resource.setrlimit(kind, (bound, final))


def filter_system_calls(libc: Any) -> bool:
    """Install a seccomp filter that kills the process at any system call that `SYSTEM_CALLS` doesn't permit.

    Return whether the filter was installed.
    """
    machine = os.uname().machine
    if machine not in SYSTEM_CALLS:
        return False
    architecture, allowed, send_signal = SYSTEM_CALLS[machine]
    last = len(allowed) + 3
    code = [
        (LOAD_WORD, 0, 0, 4),  # seccomp_data.arch
        (JUMP_IF_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, SECCOMP_RET_KILL_PROCESS),
        (LOAD_WORD, 0, 0, 0),  # seccomp_data.nr
        *((JUMP_IF_EQUAL, last - at, 0, number) for at, number in enumerate(allowed)),
        (JUMP_IF_EQUAL, 0, 2, send_signal),
        (LOAD_WORD, 0, 0, 16),  # the lower half of the first argument, which is the target process
        (JUMP_IF_EQUAL, 1, 0, os.getpid()),
        (RETURN, 0, 0, SECCOMP_RET_KILL_PROCESS),
        (RETURN, 0, 0, SECCOMP_RET_ALLOW),
    ]
    program = Program(len(code), (Instruction * len(code))(*(Instruction(*step) for step in code)))
    return libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0) == 0


def isolate(request: dict[str, Any]) -> bool:
    """Drop the process's rights. The order of the steps matters.

    Return False if the network may still be reachable.
    """
    libc = ctypes.CDLL(None)
    libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    network = leave_network(libc)
    drop_identity()
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    set_limits(request["limits"])
    return filter_system_calls(libc) or network
