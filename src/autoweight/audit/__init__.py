"""Which labels look wrong, from what a weigher has come to remember of its training."""
