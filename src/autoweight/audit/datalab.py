"""The audit as an issue manager of cleanlab's Datalab, where cleanlab is installed.

lab = Datalab({"image": images, "label": labels}, label_name="label")
lab.find_issues(issue_types={aw.datalab.register(): {"weigher": weigher}})
lab.get_issues("autoweight_label")
"""

from importlib import import_module
from typing import Any

import numpy as np

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

        def find_issues(self, weigher: Weigher | None = None, threshold: float | None = None, **more: Any) -> None:
            """Audit the lab's labels by the memory of a weigher that was trained on them."""
            require(weigher is not None, f"tell Datalab the weigher: {{'{ISSUE_NAME}': {{'weigher': weigher}}}}.")
            assert weigher is not None
            found = find_label_issues(weigher, np.asarray(self.datalab.labels), threshold=threshold)
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
