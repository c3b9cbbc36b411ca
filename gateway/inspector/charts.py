"""Bundle the Vega-Lite libraries into one script, from an installed package and without downloads.

The build needs a JavaScript engine and two seconds, so it runs once, in a separate process.
"""

import asyncio
import gzip
import sys
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec

from orchestrator.errors import Unavailable
from orchestrator.extras import needs_extra

TIMEOUT_S = 300.0
_MAKE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


@dataclass(frozen=True, slots=True)
class Script:
    compressed: bytes
    tag: str


class ChartScript:
    """The script that defines `window.vegaEmbed`, built on first use. Bound to one event loop."""

    def __init__(self) -> None:
        self._made: Script | None = None
        self._making = asyncio.Lock()

    async def get(self) -> Script:
        """Return the script. Raises Unavailable if the package is missing or the build fails."""
        if find_spec("vl_convert") is None:
            raise Unavailable(needs_extra("charts"))
        async with self._making:
            if self._made is None:
                source = await _make()
                self._made = Script(gzip.compress(source, mtime=0), f'"{sha256(source).hexdigest()[:32]}"')
            return self._made


async def _make() -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _MAKE),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            source, complaint = await process.communicate()
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    if process.returncode != 0 or not source:
        raise Unavailable(
            f"The chart library could not be bundled: {complaint.decode(errors='replace')[-300:]}"
        )
    return source
