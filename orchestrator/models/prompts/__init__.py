"""The built-in prompts, one Markdown file each."""
