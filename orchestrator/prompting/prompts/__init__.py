"""The prompts that ship, one Markdown file each. `orchestrator.prompting.templates` reads them."""
