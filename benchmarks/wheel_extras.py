"""The built wheel in fresh environments: each extra by itself, and what it is for.

python benchmarks/wheel_extras.py                  every extra, one after the other: about half an hour on one core
python benchmarks/wheel_extras.py sklearn cli      these alone

For each extra a virtual environment is made in a temporary folder, and deleted again: first torch, of the version that
runs this script, then the wheel with the extra, which has to leave torch alone; then the extra's job. A line each goes
to the screen: packages beside torch's own, what torch became, and whether the job ran, with the end of its output.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TORCH = torch.__version__.partition("+")[0]
NEED_A_PIN = ("networks",)
"""A release of torchvision is made for one torch: pip would take the newest of both unless torch is named beside it."""

_ROWS = """
import torch, autoweight as aw
torch.set_num_threads(1)
torch.manual_seed(0)
inputs = torch.randn(200, 4)
labels = (inputs[:, 0] > 0).long()
rows = torch.utils.data.TensorDataset(inputs, labels)
make_model, training = lambda: torch.nn.Linear(4, 2), aw.TrainingConfig(epochs=4, batch_size=50, num_stages=4)
"""
_ISSUES = _ROWS + "issues = aw.fit(make_model, rows, training=training).issues\n"
CODE = {
    "report": """
import json, pathlib
from autoweight.config.files import dump_config
from autoweight.recipes import get_recipe
from autoweight.report.page import write_report
run = pathlib.Path("run")
run.mkdir()
(run / "config.yaml").write_text(dump_config(get_recipe("digits-noise")))
print(write_report([run]))
""",
    "search": _ROWS
    + """
found = aw.search(make_model, rows, rows, aw.SearchConfig(num_episodes=1, num_workers=5), training=training)
print(aw.describe(found))
""",
    "parquet": _ISSUES + "issues.to_parquet('issues.parquet')\nprint(issues.num_issues)\n",
    "audit": _ROWS
    + """
from cleanlab import Datalab
weigher = aw.load("auto")
logits = torch.stack([-inputs[:, 0], inputs[:, 0]], dim=1)
losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
weigher.weigh(losses, logits, labels, progress=0.0, indices=torch.arange(200))
lab = Datalab({"label": labels.numpy()}, label_name="label")
lab.find_issues(issue_types={aw.datalab.register(): {"weigher": weigher}})
print(lab.get_issue_summary())
""",
    "images": """
import pathlib
from PIL import Image
from autoweight.data.image_folder import image_folder
for part in ("train", "val"):
    for name in ("cats", "dogs"):
        folder = pathlib.Path("photos", part, name)
        folder.mkdir(parents=True)
        Image.new("RGB", (300, 260)).save(folder / "one.png")
print(image_folder(pathlib.Path("photos"))[0].inputs.shape)
""",
    "log": """
import pathlib
from autoweight.runs.log import LOGS
LOGS["tensorboard"](pathlib.Path("run"))({"method": "auto", "stage": 1, "val_score": 0.5})
print(*pathlib.Path("run/tensorboard").iterdir())
""",
    "networks": """
from autoweight.models import make_network
for name in ("torchvision:resnet18", "timm:resnet18"):
    print(name, sum(one.numel() for one in make_network(name, (3, 64, 64), 5).parameters()))
""",
}
JOBS: dict[str, list[str]] = {
    "lightning": ["examples/lightning_rows.py"],
    "transformers": ["examples/transformers_text.py", "auto", "1"],
    "skorch": ["examples/skorch_digits.py"],
    "sklearn": ["examples/sklearn_forest.py"],
    "cli": ["examples/log_elsewhere.py"],
    "docs": ["-m", "sphinx", "--fail-on-warning", "--quiet", "-b", "html", str(ROOT / "docs"), "site"],
    "dev": ["-m", "pytest", str(ROOT / "tests" / "test_package.py"), "-p", "no:cacheprovider"],
} | {extra: ["-c", code] for extra, code in CODE.items()}


def tried(extra: str, wheel: Path) -> str:
    """One extra in an environment of its own: a line that says how it went."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", Path(folder) / "env"], check=True)
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, f"torch=={TORCH}"], check=True, capture_output=True)
        before = installed(python)
        pins = [f"torch=={TORCH}"] if extra in NEED_A_PIN else []
        subprocess.run([*install, f"{wheel}[{extra}]", *pins], check=True, capture_output=True)
        after = installed(python)
        words = [str(ROOT / word) if word.startswith("examples/") else word for word in JOBS[extra]]
        job = subprocess.run([python, *words], cwd=folder, capture_output=True, text=True)
        last = (job.stdout if job.returncode == 0 else job.stderr).strip().splitlines()[-1:]
        kept = "kept" if before["torch"] == after["torch"] else f"became {after['torch']}"
        outcome = "ran" if job.returncode == 0 else "FAILED"
        return f"{extra}: {len(after) - len(before)} packages, torch {kept}, {outcome}: {''.join(last)}"


def installed(python: Path) -> dict[str, str]:
    """Packages of an environment and their versions."""
    shown = subprocess.run([python, "-m", "pip", "freeze", "--all"], check=True, capture_output=True, text=True).stdout
    return {name: rest for name, _, rest in (line.replace(" @ ", "==").partition("==") for line in shown.splitlines())}


def main() -> None:
    """Build the wheel, and try the extras that are asked for."""
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = Path(folder).glob("*.whl")
        for extra in sys.argv[1:] or EXTRAS:
            print(tried(extra, wheel), flush=True)


if __name__ == "__main__":
    main()
