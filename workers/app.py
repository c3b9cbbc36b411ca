"""The Celery application: queues, routes and settings."""
