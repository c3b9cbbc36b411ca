"""``python -m workers``: the Celery command line that `parley.roles` starts."""

import gc

# With the default thresholds, garbage collection takes a sixth of the startup time.
gc.set_threshold(50_000)

from celery.__main__ import main  # noqa: E402

if __name__ == "__main__":
    main()
