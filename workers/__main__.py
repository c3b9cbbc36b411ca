"""``python -m workers``: Celery's command, for the programs of `parley.roles`."""

import gc

# What a start makes stays. Looking through it for what may go, hundreds of times, takes a sixth of the start.
gc.set_threshold(50_000)

from celery.__main__ import main  # noqa: E402

if __name__ == "__main__":
    main()
