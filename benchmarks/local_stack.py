"""Measure the size, memory and CPU of an idle stack started by `parley up`.

Memory is the proportional set size, which counts a shared page once. The installed size is the size of this Python
environment's site-packages. To measure the stack of `make run` or `make up`, use the environment that they create.
"""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.environment import Report, parse

MIB = 2**20
SHOWN = 12


def main() -> int:
    arguments = parse(
        "benchmarks.local_stack",
        __doc__,
        rest=(15.0, "idle seconds before the measurement"),
        idle=(20.0, "seconds of CPU measurement"),
    )
    report = Report("local_stack", as_json=arguments.json)
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder:
        _stop(_start(Path(folder)))  # create the stores, so that the measured start finds them
        began = time.perf_counter()
        up = _start(Path(folder))
        try:
            ready_s = time.perf_counter() - began
            time.sleep(arguments.rest)
            processes = [psutil.Process(up.pid), *psutil.Process(up.pid).children(recursive=True)]
            before = {one: _cpu_s(one) for one in processes}
            time.sleep(arguments.idle)
            running = [one for one in processes if one.is_running()]  # surplus connections may have ended
            rows = [_measure(one, before[one], arguments.idle) for one in running]
        finally:
            _stop(up)
    report.rows("processes", sorted(rows, key=lambda row: -row["MiB"])[:SHOWN])
    total = {
        "installed MiB": _installed_mib(),
        "ready within s": ready_s,
        "processes": len(rows),
        "idle MiB": sum(row["MiB"] for row in rows),
        "idle % of a core": sum(row["% of a core"] for row in rows),
    }
    report.rows("local stack", [total])
    report.end()
    return 0


def _start(folder: Path) -> subprocess.Popen[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "parley", "up", "--data-dir", str(folder), "--port", str(port)]
    up = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert up.stderr is not None
    for line in up.stderr:
        if line.startswith("Ready."):
            break
    else:
        raise SystemExit("`parley up` ended before it was ready.")
    return up


def _stop(up: subprocess.Popen[str]) -> None:
    up.terminate()
    up.wait()


def _measure(process: psutil.Process, before_s: float, during_s: float) -> dict[str, Any]:
    return {
        "process": f"{process.name()} {process.pid}",
        "MiB": process.memory_full_info().pss / MIB,
        "% of a core": 100 * (_cpu_s(process) - before_s) / during_s,
    }


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _installed_mib() -> float:
    packages = Path(psutil.__file__).parents[1]
    return sum(one.stat().st_size for one in packages.rglob("*") if one.is_file()) / MIB


if __name__ == "__main__":
    sys.exit(main())
