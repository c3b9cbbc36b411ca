"""`make bench` runs every benchmark there is."""

import asyncio

from benchmarks.turns import main

asyncio.run(main())
