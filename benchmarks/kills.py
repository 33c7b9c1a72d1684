"""Kills of random ranks at random moments: every run has to end as the undisturbed one.

    OMP_NUM_THREADS=1 python benchmarks/kills.py --kills 20

A search, a training and a comparison of digits-noise, and a training on streamed images, take turns, each under
torchrun with two ranks that it may start again. One rank, drawn at random, gets SIGKILL at a moment drawn from the time
that the undisturbed run worked, from when it had made its folder. Linux only: the ranks are torchrun's children in
/proc.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from safetensors.torch import load_file
from sklearn.datasets import load_digits

SHORT = ["--data.train-size", "320", "--training.epochs", "20"]
RUNS = {
    "search": ["search", "digits-noise", *SHORT, "--search.num-episodes", "2", "--search.choice-rounds", "1"],
    "train": ["train", "digits-noise", *SHORT, "--method", "auto"],
    "compare": ["compare", "digits-noise", *SHORT, "--methods", "uniform,focal", "--seeds", "2"],
    "stream": ["train", "photos", "--data.stream", "--network", "mlp", "--training.epochs", "8"],
}
TORCHRUN = [
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
    "--max-restarts",
    "3",
]


def make_photos(folder: Path) -> None:
    """Digits as images in class folders."""
    digits = load_digits()
    for number, (image, label) in enumerate(zip(digits.images[:400], digits.target, strict=False)):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray((16 * image).clip(0, 255).astype("uint8")).save(folder / str(label) / f"{number}.png")


def start(verb: str, folder: Path) -> subprocess.Popen:
    """A run under torchrun, where the images are."""
    words = [*TORCHRUN, "-m", "autoweight", *RUNS[verb], "--out", str(folder)]
    with Path(f"{folder}.log").open("w") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, cwd=folder.parent)


def came_to(folder: Path) -> list:
    """All that a run leaves behind but times: metrics, results, and the strategy's numbers."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    kept = [{key: value for key, value in line.items() if "seconds" not in key} for line in lines]
    result = json.loads((folder / "result.json").read_text())
    scores = {name: values["test_accuracy"] for name, values in result["methods"].items()}
    strategy = folder / "strategy.safetensors"
    table = load_file(strategy)["table"].tolist() if strategy.exists() else None
    return [sorted(map(json.dumps, kept)), scores, table]


def wait_for_work(folder: Path, torchrun: subprocess.Popen) -> float:
    """When the run has made its folder."""
    while not (folder / "config.yaml").exists() and torchrun.poll() is None:
        time.sleep(0.01)
    return time.monotonic()


def kill_one(torchrun: subprocess.Popen, folder: Path, moment: float) -> int | None:
    """Kill a rank at a moment after the work has begun; which one, or None where the run was over."""
    wait_for_work(folder, torchrun)
    time.sleep(moment)
    while torchrun.poll() is None:
        children = Path(f"/proc/{torchrun.pid}/task/{torchrun.pid}/children").read_text().split()
        if len(children) == 2:
            rank = random.randrange(2)
            os.kill(int(children[rank]), signal.SIGKILL)
            return rank
        time.sleep(0.02)
    return None


def main() -> None:
    """Run undisturbed, then with kills; print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    with tempfile.TemporaryDirectory() as place:
        make_photos(Path(place) / "photos")
        whole, seconds = {}, {}
        for verb in RUNS:
            torchrun = start(verb, Path(place) / verb)
            began = wait_for_work(Path(place) / verb, torchrun)
            assert torchrun.wait() == 0, Path(f"{place}/{verb}.log").read_text()
            whole[verb], seconds[verb] = came_to(Path(place) / verb), time.monotonic() - began
            print(f"{verb}, undisturbed: {seconds[verb]:.1f} s of work", flush=True)
        kills = same = 0
        while kills < arguments.kills:
            verb = list(RUNS)[kills % len(RUNS)]
            folder = Path(place) / f"{verb}-{kills}-{time.time_ns()}"
            moment = random.uniform(0, seconds[verb])
            torchrun = start(verb, folder)
            rank = kill_one(torchrun, folder, moment)
            status = torchrun.wait()
            if rank is None:
                continue  # it was faster than the undisturbed one
            kills += 1
            alike = status == 0 and came_to(folder) == whole[verb]
            same += alike
            print(
                f"{kills:2} {verb}, rank {rank} killed after {moment:.1f} s: {'same' if alike else 'NOT the same'}",
                flush=True,
            )
            if not alike:
                print(Path(f"{folder}.log").read_text(), flush=True)
    print(f"{same} of {kills} runs with a killed rank ended as the undisturbed one")


if __name__ == "__main__":
    main()
