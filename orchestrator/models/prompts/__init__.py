"""The shipped prompts, one Markdown file each."""
