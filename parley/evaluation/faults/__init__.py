"""Take a domain's conversations again with something going wrong at every step, and judge what came of it."""
