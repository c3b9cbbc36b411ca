"""A program that runs the stores of a folder, its only argument, prints their addresses, and waits."""

import signal
import sys
from pathlib import Path

from parley.embedded import stores

if __name__ == "__main__":
    with stores(Path(sys.argv[1]), durable=False) as running:
        print(running.database_url, flush=True)
        print(running.redis_url, flush=True)
        signal.pause()
