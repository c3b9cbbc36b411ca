"""The shipped prompts, one Markdown file each. `orchestrator.models.templates` reads them."""
