"""The tasks of the gauntlet, by family. What is shipped is found on the families of FIND, and judged on those of JUDGE.

The split was fixed before the first comparison; the families of JUDGE have generators, networks and trainings of their
own, and nothing was chosen by what they show (docs/lab-notes.md says when they were looked at).
"""

from functools import partial

from gauntlet_train import Task

LONG = {"epochs": 60, "lr": 0.1, "schedule": "drops"}
ADAM = {"optimizer": "adam", "lr": 1e-3, "schedule": "constant"}
ADAMW = {"optimizer": "adamw", "lr": 2e-3, "decay": 1e-2, "schedule": "constant"}
COSINE = {"optimizer": "sgd", "lr": 0.05, "schedule": "cosine"}

_digits = partial(Task, "digits")
DIGITS = [
    _digits(**LONG),
    _digits(**ADAM, epochs=10, dropout=0.3),
    _digits("uniform", 0.1, **LONG),
    _digits("uniform", 0.2, **ADAMW, epochs=40),
    _digits("uniform", 0.4, **LONG),
    _digits("uniform", 0.4, **COSINE, epochs=20, norm=True, decay=5e-4),
    _digits("uniform", 0.4, **ADAM, epochs=100, dropout=0.5, batch=128),
    _digits("uniform", 0.6, **LONG),
    _digits("uniform", 0.8, **LONG),
    _digits("uniform", 0.4, **COSINE, epochs=60, decay=1e-2),
    _digits("uniform", 0.4, **COSINE, epochs=60, smoothing=0.1),
    _digits("asymmetric", 0.2, **ADAMW, epochs=40),
    _digits("asymmetric", 0.4, **LONG),
    _digits("sample", 0.2, **LONG),
    _digits("sample", 0.4, **ADAM, epochs=60),
    _digits("tree", **ADAM, epochs=30),
    _digits("none", 0, "longtail", 50, **LONG),
    _digits("none", 0, "step", 20, **LONG),
    _digits("none", 0, "longtail", 4, **LONG),
    _digits("uniform", 0.3, "longtail", 20, **LONG),
]

_clusters = partial(Task, "clusters")
TWO, MANY, TWENTY = (("classes", 2),), (("classes", 7), ("apart", 2.0)), (("classes", 20), ("features", 40))
HARD = (("classes", 8), ("apart", 0.5), ("groups", 4))
CLUSTERS = [
    _clusters(options=TWO, size=300, **ADAM, epochs=40, batch=16),
    _clusters(options=MANY, size=10000, **ADAMW, epochs=20, batch=256),
    _clusters(options=HARD, size=4000, **ADAM, epochs=30, batch=128),
    _clusters(options=HARD, size=2000, **COSINE, epochs=10),
    _clusters(options=TWENTY, size=3000, **COSINE, epochs=30, norm=True),
    _clusters("uniform", 0.3, options=TWO, size=300, **ADAM, epochs=80, batch=16),
    _clusters("uniform", 0.4, options=TWO, size=2000, **ADAM, epochs=60),
    _clusters("uniform", 0.4, options=MANY, size=10000, **ADAMW, epochs=30, batch=256),
    _clusters("uniform", 0.4, options=MANY, size=20000, **ADAMW, epochs=5, batch=512),
    _clusters("uniform", 0.4, options=HARD, size=4000, **ADAM, epochs=30, batch=128),
    _clusters("uniform", 0.6, options=MANY, size=5000, **COSINE, epochs=100, batch=128),
    _clusters("uniform", 0.4, options=TWENTY, size=4000, **ADAM, epochs=60, batch=128),
    _clusters("asymmetric", 0.3, options=MANY, size=4000, **ADAM, epochs=60, batch=128),
    _clusters("asymmetric", 0.3, options=TWO, size=2000, **COSINE, epochs=60),
    _clusters("sample", 0.3, options=MANY, size=4000, **ADAM, epochs=60, batch=128),
    _clusters("tree", options=MANY, size=3000, **ADAM, epochs=20),
    _clusters("none", 0, "longtail", 100, options=MANY, size=6000, **ADAM, epochs=30),
    _clusters("uniform", 0.4, "step", 20, options=MANY, size=4000, **ADAM, epochs=40),
]

_strokes = partial(Task, "strokes", channels=(8, 16, 24), hidden=(), norm=True, optimizer="adam", lr=5e-3)
STROKES = [
    _strokes(epochs=15, schedule="cosine"),
    _strokes("uniform", 0.4, epochs=40, schedule="cosine"),
    _strokes("asymmetric", 0.4, epochs=40, schedule="cosine"),
    _strokes("sample", 0.3, epochs=40, schedule="constant"),
    _strokes("none", 0, "longtail", 20, epochs=30, schedule="cosine"),
]

_topics = partial(Task, "topics", hidden=(64,), size=1500)
SHARP = (("own", 0.45),)
BLURRED = (("own", 0.2),)
TOPICS = [
    _topics(options=SHARP, **ADAMW, epochs=15),
    _topics(options=BLURRED, **ADAMW, epochs=15),
    _topics("uniform", 0.4, options=SHARP, **ADAMW, epochs=30),
    _topics("uniform", 0.3, options=BLURRED, **ADAMW, epochs=30),
    _topics("asymmetric", 0.3, options=SHARP, **ADAM, epochs=40),
    _topics("keywords", 0.2, options=SHARP, **ADAMW, epochs=15),
    _topics("keywords", 0.8, options=BLURRED, **ADAMW, epochs=15),
    _topics("keywords", 0.95, options=SHARP, **ADAM, epochs=60, dropout=0.3),
    _topics("none", 0, "longtail", 20, options=SHARP, **ADAMW, epochs=20),
]

_tables = partial(Task, hidden=(64, 64), size=400, seeds=5)
TABLES = [
    _tables("breast_cancer", **COSINE, epochs=30, batch=32),
    _tables("breast_cancer", "uniform", 0.3, **ADAM, epochs=80, batch=32),
    _tables("breast_cancer", "uniform", 0.6, **LONG, batch=16, decay=1e-3),
    _tables("breast_cancer", "asymmetric", 0.3, **ADAMW, epochs=100, batch=32),
    _tables("breast_cancer", "sample", 0.2, **LONG, batch=32),
    _tables("breast_cancer", "tree", **ADAM, epochs=40, batch=32),
    _tables("breast_cancer", "none", 0, "step", 15, **ADAM, epochs=40, batch=32),
    _tables("wine", **ADAM, epochs=40, batch=16),
    _tables("wine", "uniform", 0.4, **ADAM, epochs=150, batch=16),
    _tables("wine", "asymmetric", 0.3, **ADAM, epochs=100, batch=16),
    _tables("iris", **ADAM, epochs=60, batch=16),
    _tables("iris", "uniform", 0.4, **ADAM, epochs=200, batch=16),
]

_teacher = partial(Task, "teacher")
NARROW, FOUR = (("classes", 10), ("width", 40)), (("classes", 4), ("width", 4))
TEACHER = [
    _teacher(options=NARROW, size=4000, **ADAM, epochs=20),
    _teacher(options=NARROW, size=2000, **COSINE, epochs=50, norm=True, decay=1e-3),
    _teacher(options=FOUR, size=20000, **ADAMW, epochs=15, batch=512),
    _teacher(options=FOUR, size=50000, **COSINE, epochs=8, batch=256),
    _teacher("uniform", 0.2, options=FOUR, size=8000, **ADAM, epochs=40, batch=128),
    _teacher("uniform", 0.5, options=FOUR, size=8000, **ADAM, epochs=40, batch=128, dropout=0.2),
    _teacher("uniform", 0.4, options=NARROW, size=4000, **ADAM, epochs=40, batch=128),
    _teacher("asymmetric", 0.4, options=FOUR, size=5000, **ADAMW, epochs=50, batch=256),
    _teacher("sample", 0.3, options=FOUR, size=5000, **COSINE, epochs=80, batch=128),
    _teacher("tree", options=FOUR, size=4000, **ADAM, epochs=25),
    _teacher("none", 0, "longtail", 50, options=FOUR, size=8000, **ADAM, epochs=30, batch=128),
    _teacher("uniform", 0.3, "longtail", 50, options=FOUR, size=8000, **ADAM, epochs=30, batch=128),
]

_shapes = partial(Task, "shapes", channels=(6, 12, 20), hidden=(), size=1000, batch=64)
SHAPES = [
    _shapes(norm=True, epochs=15, optimizer="adamw", lr=5e-3, decay=1e-2, schedule="cosine"),
    _shapes("uniform", 0.2, norm=True, epochs=40, optimizer="adamw", lr=5e-3, decay=1e-2, schedule="cosine"),
    _shapes("uniform", 0.5, norm=True, epochs=40, optimizer="adam", lr=5e-3, schedule="constant"),
    _shapes("asymmetric", 0.4, norm=True, epochs=30, optimizer="adam", lr=5e-3, schedule="cosine"),
    _shapes("none", 0, "step", 30, norm=True, epochs=30, optimizer="sgd", lr=0.1, schedule="cosine"),
]

_reviews = partial(Task, "reviews", hidden=(100,), size=2000)
FIVE = (("classes", 5),)
REVIEWS = [
    _reviews(**ADAM, epochs=10, batch=128),
    _reviews(options=FIVE, **ADAMW, epochs=25),
    _reviews("uniform", 0.4, **ADAM, epochs=30, batch=128),
    _reviews("uniform", 0.3, options=FIVE, **ADAM, epochs=40),
    _reviews("asymmetric", 0.3, options=FIVE, **ADAMW, epochs=30),
    _reviews("keywords", 0.5, **ADAM, epochs=12),
    _reviews("keywords", 0.9, options=FIVE, **ADAMW, epochs=15),
    _reviews("keywords", 0.8, options=FIVE, **ADAM, epochs=50, dropout=0.3),
    _reviews("none", 0, "step", 20, options=FIVE, **ADAM, epochs=20),
]

_images = partial(Task, "digit_images", channels=(6, 12, 20), hidden=(32,), norm=True, size=800)
IMAGES = [
    _images(epochs=15, optimizer="adamw", lr=3e-3, decay=1e-2, schedule="cosine", dropout=0.2),
    _images("uniform", 0.4, epochs=40, optimizer="sgd", lr=0.1, decay=5e-4, schedule="cosine"),
    _images("uniform", 0.6, epochs=60, optimizer="adam", lr=3e-3, schedule="cosine", batch=32),
    _images("sample", 0.4, epochs=40, optimizer="adam", lr=3e-3, schedule="constant"),
    _images("asymmetric", 0.3, epochs=40, optimizer="adam", lr=3e-3, schedule="cosine"),
    _images("uniform", 0.2, "longtail", 20, epochs=30, optimizer="adam", lr=3e-3, schedule="cosine"),
]

_cifar = partial(Task, "cifar10", channels=(16, 16, 16, 32, 32, 64, 64), hidden=(), norm=True, size=4000, batch=128)
CIFAR = [
    _cifar(epochs=20, **COSINE, decay=5e-4),
    _cifar("uniform", 0.4, epochs=40, **COSINE, decay=5e-4),
    _cifar("asymmetric", 0.3, epochs=40, **COSINE, decay=5e-4),
    _cifar("none", 0, "longtail", 20, epochs=30, **COSINE, decay=5e-4),
]
"""With a small residual network; where there is the data."""

FIND = DIGITS + CLUSTERS + STROKES + TOPICS
JUDGE = TABLES + TEACHER + SHAPES + REVIEWS + IMAGES

_large = partial(_clusters, schedule="cosine", norm=True)
FOUR_EACH = (("classes", 10), ("groups", 4))
UNDERFIT = {"options": FOUR_EACH, "size": 16000, "lr": 0.4, "decay": 2e-3, "epochs": 30, "batch": 128}
OVERFIT = {"options": FOUR_EACH, "size": 16000, "lr": 0.1, "decay": 5e-4, "epochs": 60, "batch": 128}
DECAYED = {"optimizer": "adamw", "lr": 2e-3, "decay": 0.05, "epochs": 25}
LARGE = [
    _large("uniform", 0.2, **UNDERFIT),
    _large("sample", 0.3, **UNDERFIT),
    _large("uniform", 0.4, **UNDERFIT),
    _large("asymmetric", 0.4, **UNDERFIT),
    _large("uniform", 0.2, **OVERFIT),
    _large("sample", 0.3, **OVERFIT),
    _large("asymmetric", 0.4, **OVERFIT),
    _clusters("sample", 0.3, options=(*FIVE, ("groups", 6)), size=20000, **ADAM, epochs=20, batch=128, dropout=0.3),
    _clusters("sample", 0.3, options=(*TWO, ("groups", 8)), size=20000, **ADAM, epochs=15, batch=128, dropout=0.2),
    _large("sample", 0.3, options=(("classes", 4), ("apart", 0.7), ("groups", 3)), size=12000, **DECAYED, batch=256),
    _large("sample", 0.3, options=(("classes", 3), ("apart", 0.6), ("groups", 4)), size=8000, **DECAYED, batch=128),
]
"""Hard ones that are large enough for sparing, whether networks memorise them or not: strategy/sparing.py."""
