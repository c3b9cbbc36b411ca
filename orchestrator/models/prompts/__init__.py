"""The prompts that ship, one Markdown file each. `orchestrator.models.templates` reads them."""
