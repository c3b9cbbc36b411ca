"""`make bench`: turns beside a hand-written task."""

import asyncio

from benchmarks.turns import main

asyncio.run(main())
