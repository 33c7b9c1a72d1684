"""Small networks for texts whose words were hashed to numbers, `[texts, words]`, 0 where a text has ended."""

from torch import Tensor, nn

from autoweight.config import TEXT_BUCKETS
from autoweight.errors import require


class WordMean(nn.Module):
    """The mean of the embeddings of a text's words."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TEXT_BUCKETS, size)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(self, words: Tensor) -> Tensor:
        """`[texts, size]`; zeros for a text without words."""
        there = (words != 0).unsqueeze(-1).to(self.embedding.weight.dtype)
        return (self.embedding(words) * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)


def bag_of_words(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """A linear model of a text's hashed words."""
    _check(input_shape)
    return WordMean(num_classes)


def text_embedding(input_shape: tuple[int, ...], num_classes: int, size: int = 32) -> nn.Module:
    """Embeds hashed words, takes their mean, and has a hidden layer behind it."""
    _check(input_shape)
    return nn.Sequential(WordMean(size), nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, num_classes))


def _check(input_shape: tuple[int, ...]) -> None:
    require(len(input_shape) == 1, f"this network takes hashed words of texts, not inputs of shape {input_shape}.")
