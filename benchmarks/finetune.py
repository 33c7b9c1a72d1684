"""A small transformer with Hugging Face's Trainer and with WeightedTrainer: texts, 40 % of them labelled wrongly.

python benchmarks/finetune.py                    about five minutes on one core

The network is a BERT of two layers, 128 wide, with random parameters, 10 epochs; accuracies in percent on 1,000 new
texts with right labels. Processor seconds of the trainings stand beside them, and their ratio in the end.
"""

import sys
import time
from pathlib import Path

import torch
from transformers.utils import logging

import autoweight as aw

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from transformers_text import train

SEEDS = 3


def main() -> None:
    """Print a line a seed, and means."""
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    train(None, epochs=1, width=128)  # so that nothing is loaded while the clock runs
    table = []
    for seed in range(SEEDS):
        row = []
        for make in (lambda: None, lambda: aw.load("auto")):
            start = time.process_time()
            row += [100 * train(make(), seed, width=128), time.process_time() - start]
        table.append(row)
        print(f"seed {seed}: plain {row[0]:.1f} in {row[1]:.1f} s, auto {row[2]:.1f} in {row[3]:.1f} s", flush=True)
    plain, plain_time, auto, auto_time = (sum(column) / SEEDS for column in zip(*table, strict=True))
    print(f"mean: plain {plain:.1f}, auto {auto:.1f}, ahead by {auto - plain:.1f}; time {auto_time / plain_time:.3f}")


if __name__ == "__main__":
    main()
