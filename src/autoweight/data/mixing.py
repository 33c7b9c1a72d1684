"""Seeds that are made of several numbers."""


def mix(*numbers: int) -> int:
    """One well-spread seed made of several numbers, such as a run's seed and a step."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = ((state ^ number) * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) % 2**64
        state ^= state >> 31
    return state % 2**63
