"""Data of the gauntlet: families of small problems, all generated or shipped with scikit-learn, and their biases."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from autoweight import data

SCORED = 1000  # samples to test on, where there are as many; a quarter of it to validate on
_LARGEST_FIT = 2000  # rows by which hardness and rules are made


class Problem(NamedTuple):
    """Samples with true labels; the training's come with the labels that they are given."""

    inputs: np.ndarray
    labels: np.ndarray


def digits(rng, size: int) -> Problem:
    """Handwritten digits of 8 x 8 pixels."""
    inputs, labels = datasets.load_digits(return_X_y=True)
    order = rng.permutation(len(labels))
    return Problem((inputs / 16.0)[order], labels[order])


def digit_images(rng, size: int) -> Problem:
    """The same, as images of 16 x 16 pixels that are moved by up to two."""
    flat = digits(rng, size)
    large = np.kron(flat.inputs.reshape(-1, 8, 8), np.ones((2, 2)))
    moved = [np.roll(image, rng.integers(-2, 3, 2), (0, 1)) for image in large]
    return Problem(np.stack(moved)[:, None] + 0.1 * rng.standard_normal((len(large), 1, 16, 16)), flat.labels)


def clusters(rng, size: int, classes: int = 5, features: int = 20, apart: float = 1.5, groups: int = 2) -> Problem:
    """Gaussian clusters, several a class, half of the features informative."""
    inputs, labels = datasets.make_classification(
        size,
        features,
        n_informative=features // 2,
        n_redundant=features // 5,
        n_classes=classes,
        n_clusters_per_class=groups,
        class_sep=apart,
        flip_y=0,
        random_state=int(rng.integers(2**31)),
    )
    return Problem(inputs, labels)


def teacher(rng, size: int, classes: int = 4, features: int = 16, width: int = 12) -> Problem:
    """Labels by a random network: no label is wrong, but more samples than there are would be needed to learn it."""
    inputs = rng.standard_normal((3 * size, features))
    hidden = np.tanh(inputs @ rng.standard_normal((features, width)) * 1.5)
    scores = hidden @ rng.standard_normal((width, classes))
    labels = (scores - scores.mean(0)).argmax(1)
    return _balanced(Problem(inputs, labels), classes, size, rng)


def table(name: str) -> Callable[..., Problem]:
    """A table that scikit-learn ships."""

    def load(rng, size: int) -> Problem:
        inputs, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        order = rng.permutation(len(labels))
        return Problem(inputs[order], labels[order])

    return load


def strokes(rng, size: int, classes: int = 8) -> Problem:
    """Images of 12 x 12 pixels: each class is three line segments, moved, turned a little, in noise."""
    ends = rng.uniform(-0.8, 0.8, (classes, 3, 2, 2))
    labels = rng.integers(classes, size=size)
    turn = rng.normal(0, 0.25, size)
    rotation = np.stack([np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)], -1).reshape(-1, 1, 1, 2, 2)
    drawn = (rotation @ ends[labels][..., None])[..., 0] + rng.normal(0, 0.12, (size, 1, 1, 2))
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 12)] * 2, indexing="ij"), -1).reshape(1, 1, -1, 2)
    start, along = drawn[:, :, :1], drawn[:, :, 1:] - drawn[:, :, :1]
    where = (((grid - start) * along).sum(-1) / (along**2).sum(-1).clip(1e-6)).clip(0, 1)
    distance = (((grid - start - where[..., None] * along) ** 2).sum(-1)).min(1)
    image = np.exp(-distance / 0.02) + 0.3 * rng.standard_normal(distance.shape)
    return Problem(image.reshape(size, 1, 12, 12), labels)


def shapes(rng, size: int, classes: int = 6) -> Problem:
    """Images of 14 x 14 pixels: disc, square, ring, cross, triangle or frame, of any size and place, in noise."""
    labels = rng.integers(classes, size=size)
    across, down = np.meshgrid(*[np.linspace(-1, 1, 14)] * 2)
    radius, centre = rng.uniform(0.35, 0.7, (size, 1, 1)), rng.uniform(-0.3, 0.3, (2, size, 1, 1))
    u, v = (across - centre[0]) / radius, (down - centre[1]) / radius
    far, box = np.hypot(u, v), np.maximum(abs(u), abs(v))
    kinds = [
        far < 1,
        box < 0.9,
        (far < 1) & (far > 0.6),
        (np.minimum(abs(u), abs(v)) < 0.25) & (box < 1),
        (v < 0.8) & (v > 2 * abs(u) - 1),
        (box < 0.9) & (box > 0.55),
    ]
    image = np.choose(labels[:, None, None], kinds) + 0.35 * rng.standard_normal(u.shape)
    return Problem(image[:, None], labels)


def topics(rng, size: int, classes: int = 6, vocabulary: int = 300, length: int = 30, own: float = 0.35) -> Problem:
    """Bags of words: some from the document's topic, some from another topic, the rest of all kinds."""
    common = rng.dirichlet(np.full(vocabulary, 0.5))
    by_topic = rng.dirichlet(np.full(vocabulary, 0.05), classes)
    labels, second = rng.integers(classes, size=(2, 2 * size))
    mixture = own * by_topic[labels] + 0.4 * own * by_topic[second] + (1 - 1.4 * own) * common
    return Problem(np.log1p(rng.multinomial(length, mixture)), labels)


def reviews(rng, size: int, classes: int = 2, vocabulary: int = 500, length: int = 25) -> Problem:
    """Bags of words, each of which leans to some classes: the sum decides; documents on the fence are left out."""
    leaning = rng.standard_normal((vocabulary, classes)) * (rng.random((vocabulary, 1)) < 0.4)
    taste = rng.standard_normal((5 * size, classes))
    odds = rng.dirichlet(np.full(vocabulary, 1.0)) * np.exp(0.8 * taste @ leaning.T)
    words = rng.multinomial(length, odds / odds.sum(1, keepdims=True))
    scores = words @ (leaning - leaning.mean(1, keepdims=True))
    clear = np.diff(np.sort(scores, 1)[:, -2:])[:, 0] > 1.5
    return _balanced(Problem(np.log1p(words)[clear], scores.argmax(1)[clear]), classes, 2 * size, rng)


def cifar10(folder: Path) -> Callable[..., Problem]:
    """Photographs of 32 x 32 pixels, of the folder that holds CIFAR-10."""

    def load(rng, size: int) -> Problem:
        train, _ = data.cifar.cifar10(folder)
        chosen = rng.choice(len(train), size, replace=False)
        return Problem(train.inputs[chosen].numpy().astype(np.float32) / 128 - 1, train.labels[chosen].numpy())

    return load


def _balanced(problem: Problem, classes: int, size: int, rng) -> Problem:
    each = min(size // classes, np.bincount(problem.labels, minlength=classes).min())
    kept = np.concatenate([np.flatnonzero(problem.labels == label)[:each] for label in range(classes)])
    return _take(problem, rng.permutation(kept))


def _take(problem: Problem, chosen: np.ndarray) -> Problem:
    return Problem(problem.inputs[chosen], problem.labels[chosen])


FAMILIES: dict[str, Callable[..., Problem]] = {
    "digits": digits,
    "clusters": clusters,
    "strokes": strokes,
    "topics": topics,
    "breast_cancer": table("breast_cancer"),
    "wine": table("wine"),
    "iris": table("iris"),
    "teacher": teacher,
    "shapes": shapes,
    "reviews": reviews,
    "digit_images": digit_images,
}


def uniform(problem: Problem, rate: float, rng) -> np.ndarray:
    """Each label, with this probability, becomes a class drawn uniformly, its own included."""
    labels, classes = problem.labels, problem.labels.max() + 1
    return np.where(rng.random(len(labels)) < rate, rng.integers(classes, size=len(labels)), labels)


def asymmetric(problem: Problem, rate: float, rng) -> np.ndarray:
    """Each label, with this probability, becomes the next class."""
    labels = problem.labels
    return np.where(rng.random(len(labels)) < rate, (labels + 1) % (labels.max() + 1), labels)


def sample_dependent(problem: Problem, rate: float, rng) -> np.ndarray:
    """Samples that a linear model finds hard are mistaken more often, for the class that it takes them for."""
    flat = problem.inputs.reshape(len(problem.labels), -1)
    model = LogisticRegression(C=0.1, max_iter=200, tol=1e-2).fit(flat[:_LARGEST_FIT], problem.labels[:_LARGEST_FIT])
    odds = model.predict_proba(flat)
    own = odds[np.arange(len(odds)), problem.labels]
    odds[np.arange(len(odds)), problem.labels] = 0
    hard = 1 - own + odds.max(1)
    return np.where(rng.random(len(own)) < rate * hard / hard.mean(), odds.argmax(1), problem.labels)


def keywords(problem: Problem, rate: float, rng) -> np.ndarray:
    """Documents are labelled by votes of a few words that an expert takes for typical; -1 where none occurs."""
    seen, labels = problem.inputs > 0, problem.labels
    few = slice(0, int(_LARGEST_FIT * (1 - rate)))  # the better the expert, the more documents were read
    votes = []
    for label in range(labels.max() + 1):
        inside, outside = seen[few][labels[few] == label].mean(0), seen[few][labels[few] != label].mean(0)
        typical = np.argsort(inside - outside)[-12:]
        votes.append(seen[:, rng.choice(typical, 5, replace=False)].sum(1))
    votes = np.stack(votes, 1)
    return np.where(votes.max(1) > 0, votes.argmax(1), -1)


def tree(problem: Problem, rate: float, rng) -> np.ndarray:
    """Samples are labelled by a small tree of questions, asked on few samples: the same answers, the same mistake."""
    flat, classes = problem.inputs.reshape(len(problem.labels), -1), problem.labels.max() + 1
    model = DecisionTreeClassifier(max_leaf_nodes=4 * classes, random_state=0)
    return model.fit(flat[: 60 * classes], problem.labels[: 60 * classes]).predict(flat)


NOISES: dict[str, Callable[[Problem, float, np.random.Generator], np.ndarray]] = {
    "none": lambda problem, rate, rng: problem.labels,
    "uniform": uniform,
    "asymmetric": asymmetric,
    "sample": sample_dependent,
    "keywords": keywords,
    "tree": tree,
}

SHARES: dict[str, Callable[[int, float], np.ndarray]] = {
    "none": lambda classes, factor: np.ones(classes),
    "longtail": lambda classes, factor: factor ** -(np.arange(classes) / max(classes - 1, 1)),
    "step": lambda classes, factor: np.where(np.arange(classes) < max(classes // 5, 1), 1 / factor, 1.0),
}
"""What is kept of each class."""


def thinned(problem: Problem, shares: np.ndarray) -> Problem:
    """A share of each class, in the given order; at least two of each."""
    kept = []
    for label, share in enumerate(shares):
        members = np.flatnonzero(problem.labels == label)
        kept.append(members[: max(round(len(members) * share), 2)])
    return _take(problem, np.sort(np.concatenate(kept)))


class Split(NamedTuple):
    """Standardised inputs; the training's given and true labels."""

    train: np.ndarray
    given: np.ndarray
    true: np.ndarray
    validation: Problem
    test: Problem


def split(
    family: str, size: int, options: dict, noise: str, rate: float, imbalance: str, factor: float, seed: int
) -> Split:
    """A biased training set of about `size` samples, and clean ones to validate and to test on."""
    rng = np.random.default_rng([seed, size])
    whole = FAMILIES[family](rng, size + SCORED + SCORED // 4, **options)
    size = min(size, int(0.6 * len(whole.labels)))
    rest = len(whole.labels) - size
    parts = np.split(np.arange(len(whole.labels)), [size, size + min(rest // 4, SCORED // 4)])
    train, validation, test = (_take(whole, part) for part in parts)
    train = thinned(train, SHARES[imbalance](whole.labels.max() + 1, factor))
    given = NOISES[noise](train, rate, rng)
    named = given >= 0
    train, given = _take(train, np.flatnonzero(named)), given[named]
    if whole.inputs.ndim == 2 and family not in ("topics", "reviews"):
        centre, spread = train.inputs.mean(0), train.inputs.std(0) + 1e-6
        train, validation, test = (
            Problem((part.inputs - centre) / spread, part.labels) for part in (train, validation, test)
        )
    return Split(train.inputs, given, train.labels, validation, Problem(test.inputs[:SCORED], test.labels[:SCORED]))
