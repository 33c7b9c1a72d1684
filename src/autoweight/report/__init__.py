"""What a run shows a person: progress, tables, words."""
