"""Small networks for texts: of hashed words, `[texts, words]`, 0 where a text has ended, or of tokens' ids."""

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


class TokenWindow(nn.Module):
    """Logits of each token, from what is embedded of it and of its neighbours."""

    def __init__(self, num_classes: int, size: int, window: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TEXT_BUCKETS, size)
        self.window = nn.Conv1d(size, 2 * size, window, padding=window // 2)
        self.head = nn.Linear(2 * size, num_classes)

    def forward(self, ids: Tensor) -> Tensor:
        """`[texts, tokens, classes]`; ids that are a multiple of the number of buckets apart share an embedding."""
        embedded = self.embedding(ids % TEXT_BUCKETS)
        return self.head(self.window(embedded.transpose(1, 2)).relu().transpose(1, 2))


def token_window(input_shape: tuple[int, ...], num_classes: int, size: int = 32, window: int = 5) -> nn.Module:
    """A class for each token of `[texts, tokens]` of ids, by it and two neighbours on either side."""
    require(len(input_shape) == 1, f"this network takes ids of tokens, not inputs of shape {input_shape}.")
    return TokenWindow(num_classes, size, window)


def _check(input_shape: tuple[int, ...]) -> None:
    require(len(input_shape) == 1, f"this network takes hashed words of texts, not inputs of shape {input_shape}.")
