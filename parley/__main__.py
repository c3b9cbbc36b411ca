"""``python -m parley`` is the command ``parley``."""

from parley.main import main

main()
