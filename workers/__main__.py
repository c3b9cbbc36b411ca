"""``python -m workers``: Celery's command for the programs of `parley.roles`."""

import gc

# Startup objects are permanent. Scanning them hundreds of times takes a sixth of the startup.
gc.set_threshold(50_000)

from celery.__main__ import main  # noqa: E402

if __name__ == "__main__":
    main()
