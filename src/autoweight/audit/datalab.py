"""The audit as an issue manager of cleanlab's Datalab, where cleanlab is installed.

lab = Datalab({"image": images, "label": labels}, label_name="label")
lab.find_issues(issue_types={aw.datalab.register(): {"weigher": weigher}})
lab.get_issues("autoweight_label")
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoweight.audit.find import find_label_issues
from autoweight.errors import UserError, require
from autoweight.strategy.weigher import Weigher

ISSUE_NAME = "autoweight_label"


def register() -> str:
    """Make the audit known to Datalab; returns the name that `find_issues` takes it by."""
    try:
        managers = import_module("cleanlab.datalab.internal.issue_manager")
        factory = import_module("cleanlab.datalab.internal.issue_manager_factory")
    except ImportError as error:
        raise UserError("this plugs into cleanlab's Datalab: pip install 'autoweight[audit]'.") from error
    if not any(ISSUE_NAME in known for known in factory.REGISTRY.values()):
        factory.register(_manager(managers.IssueManager))
    return ISSUE_NAME


def _manager(base: Any) -> Any:
    """The class, made once cleanlab is there to derive it from."""

    class AutoweightLabels(base):  # type: ignore[misc]
        """Labels that the network of one weighted training has come to contradict."""

        description = "A label that the network of one weighted training has come to contradict."
        issue_name = ISSUE_NAME
        issue_score_key = f"{ISSUE_NAME}_score"
        verbosity_levels = {0: [], 1: ["noise_rate"], 2: [], 3: []}  # noqa: RUF012 - cleanlab's own form

        def find_issues(
            self,
            weigher: Weigher | None = None,
            threshold: float | None = None,
            class_names: Sequence[Any] = (),
            **more: Any,
        ) -> None:
            """Audit the lab's labels by the memory of a weigher that was trained on them.

            Labels that are words were numbered in the order of `class_names` for the training; by default as Datalab
            does it, sorted.
            """
            require(weigher is not None, f"tell Datalab the weigher: {{'{ISSUE_NAME}': {{'weigher': weigher}}}}.")
            assert weigher is not None
            labels, names = _trained_on(self.datalab, list(class_names))
            found = find_label_issues(weigher, labels, threshold=threshold, class_names=names)
            table = found.to_pandas().set_index("index").sort_index()
            self.issues = table[["is_label_issue", "label_score"]].rename(
                columns={"is_label_issue": f"is_{ISSUE_NAME}_issue", "label_score": self.issue_score_key}
            )
            self.issues.index.name = None
            self.summary = self.make_summary(score=float(table["label_score"].mean()))
            self.info = {
                "noise_rate": found.noise_rate,
                "given_label": table["given_label"].to_numpy(),
                "predicted_label": table["predicted_label"].to_numpy(),
            }

    return AutoweightLabels


def _trained_on(lab: Any, class_names: list[Any]) -> tuple[NDArray[Any], list[str]]:
    """A lab's labels as the training had them, and the classes' names where these are words.

    Datalab numbers what it finds from 0 on, also where that were numbers.
    """
    given = np.asarray([name for _, name in sorted(lab._labels.label_map.items())])
    if not class_names:
        own = given[np.asarray(lab.labels)] if np.issubdtype(given.dtype, np.integer) else np.asarray(lab.labels)
        return own, [] if np.issubdtype(given.dtype, np.integer) else given.tolist()
    missing = set(given.tolist()) - set(class_names)
    require(not missing, f"class_names lacks {', '.join(sorted(map(str, missing)))}, which the lab's labels have.")
    places = np.asarray([class_names.index(name) for name in given.tolist()])
    return places[np.asarray(lab.labels)], [str(name) for name in class_names]
