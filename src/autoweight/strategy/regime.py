"""The training that a strategy was found in, and how far another one is from it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from autoweight.config import TrainingConfig

_FAR = 4.0
"""How many times as long, as large or as strong may still be near."""
_NO_DECAY = 1e-5
"""Decays below this hardly differ from none."""


@dataclass(frozen=True)
class Regime:
    """What a strategy depends on and cannot see; what is not known is None."""

    epochs: int | None = None
    steps: int | None = None
    batch_size: int | None = None
    optimizer: str | None = None
    weight_decay: float | None = None
    schedule: str | None = None

    @classmethod
    def of(cls, training: TrainingConfig, num_samples: int | None = None) -> "Regime":
        """That of a training; its steps are told where the number of samples is."""
        return cls(
            epochs=training.epochs,
            steps=None if num_samples is None else num_samples // training.batch_size * training.epochs,
            batch_size=training.batch_size,
            optimizer=training.optimizer,
            weight_decay=training.weight_decay,
            schedule=training.schedule if isinstance(training.schedule, str) else "own",
        )

    @classmethod
    def read(cls, content: Any) -> "Regime | None":
        """The regime that a file's header holds; keys of later releases are ignored."""
        if not isinstance(content, dict):
            return None
        return cls(**{one.name: content.get(one.name) for one in fields(cls)})

    @classmethod
    def shared(cls, regimes: Sequence["Regime"]) -> "Regime":
        """What all of several trainings have in common."""
        values = {one.name: {getattr(regime, one.name) for regime in regimes} for one in fields(cls)}
        return cls(**{name: own.pop() if len(own) == 1 else None for name, own in values.items()})

    def as_dict(self) -> dict[str, Any]:
        """What a file's header holds."""
        return asdict(self)

    def differences(self, use: "Regime") -> list[str]:
        """What is far apart, as parts of a sentence."""
        found = []
        for one in fields(self):
            was, is_now = getattr(self, one.name), getattr(use, one.name)
            if was is None or is_now is None or was == is_now:
                continue
            if isinstance(was, str) or _far(one.name, float(was), float(is_now)):
                found.append(f"{one.name} {was}, here {is_now}")
        return found


def _far(name: str, one: float, other: float) -> bool:
    least = _NO_DECAY if name == "weight_decay" else 1.0
    low, high = sorted((max(one, least), max(other, least)))
    return high > _FAR * low
