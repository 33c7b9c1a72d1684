"""A weigher that counts, for trainings in two processes."""

from autoweight.strategy.auto import Auto


class Counting(Auto):
    """Notes how many samples it is given at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = []

    def weigh(self, losses, *args, **named):
        self.sizes.append(len(losses))
        return super().weigh(losses, *args, **named)
