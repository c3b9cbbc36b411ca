"""Shell commands such as `parley`, forked by a server to save imports."""

from __future__ import annotations

import ast
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.processes.fork_server import LONGEST_ORDER
from tests.processes.forked import ForkedProcess, start

MODES = ("rb", "wb", "wb")
STUB = """#!{python} -IS
import os, signal, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    socket.send_fds(server, [repr((sys.argv[1:], os.getcwd(), dict(os.environ))).encode()], [0, 1, 2])
    pid = int(server.recv(20))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = int(server.recv(20))
sys.exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def forked_command(name: str, module: str, *, imports: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a folder for ``PATH`` with a program that runs the module with the caller's arguments, folder,
    variables and streams.

    The program returns the exit code, and its process ends with the caller. `imports`: modules that the
    server imports before.
    """
    # A first command that does nothing, because later callers may not wait for imports.
    start(["-m", "__future__"], environment={}, log=Path(os.devnull), imports=imports).wait()
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-")))
        program, address = folder / name, str(folder / "orders")
        program.write_text(STUB.format(python=sys.executable, address=address))
        program.chmod(0o755)
        listener.bind(address)
        listener.listen()
        serving = threading.Thread(target=_serve, args=(listener, module, imports), name=name)
        serving.start()
        try:
            yield folder
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(listener: socket.socket, module: str, imports: Sequence[str]) -> None:
    """Serve each command in a separate thread, until shutdown."""
    commands: list[threading.Thread] = []
    while True:
        try:
            asking, _ = listener.accept()
        except OSError:  # it was shut down
            break
        commands.append(threading.Thread(target=_run, args=(asking, module, imports)))
        commands[-1].start()
    for command in commands:
        command.join()


def _run(asking: socket.socket, module: str, imports: Sequence[str]) -> None:
    with asking:
        order, streams, _, _ = socket.recv_fds(asking, LONGEST_ORDER, 3)
        words, folder, environment = ast.literal_eval(order.decode())
        given, output, errors = (os.fdopen(stream, mode) for stream, mode in zip(streams, MODES, strict=True))
        with given, output, errors:
            process = start(
                ["-m", module, *words],
                environment=environment,
                log=output,
                errors=errors,
                given=given,
                folder=Path(folder),
                imports=imports,
            )
        watching = threading.Thread(target=_end_with, args=(asking, process))
        watching.start()
        with suppress(BrokenPipeError):  # the caller was killed
            asking.send(str(process.pid).encode())
            asking.send(str(process.wait()).encode())
        process.wait()
        asking.shutdown(socket.SHUT_RDWR)
        watching.join()


def _end_with(asking: socket.socket, process: ForkedProcess) -> None:
    """Wait without reading until the caller has ended."""
    asking.recv(1)
    process.kill()
