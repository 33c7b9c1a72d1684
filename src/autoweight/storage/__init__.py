"""Files that survive a kill at any moment."""
