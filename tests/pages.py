"""Runs for the tests of the page: small, but made by the commands themselves, and what a kill leaves of one."""

import shutil
from pathlib import Path

from autoweight.cli.run import run

SHORT = ["--training.epochs", "4", "--training.num-stages", "4"]
FEW = ["--search.num-episodes", "2", "--search.num-workers", "5", "--search.choice-rounds", "2"]


def make_compare(folder: Path, methods: str = "uniform,auto,oracle", seeds: int = 2) -> Path:
    words = ["compare", "digits-noise", "--methods", methods, "--seeds", str(seeds), *SHORT]
    run([*words, "--out", str(folder)])
    return folder


def make_search(folder: Path) -> Path:
    run(["search", "digits-noise", *SHORT, *FEW, "--search.warmup-stages", "1", "--out", str(folder)])
    return folder


def make_killed(whole: Path, folder: Path) -> Path:
    """What is left of a comparison that was killed in its second training: half a line at the end, no result."""
    shutil.copytree(whole, folder)
    (folder / "result.json").unlink()
    (folder / "report.html").unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:7]) + lines[7][:30])
    for path in (folder / "samples").iterdir():
        if path.stem != "uniform-0":
            path.unlink()
    return folder
