"""What people see of a run: progress, tables, words, figures, and the page."""
