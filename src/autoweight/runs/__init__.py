"""What a command leaves behind: its folder, its result, and the work that fills them."""
