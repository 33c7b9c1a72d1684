"""How much faster two ranks search than one, with one thread each, on digits with wrong labels.

    OMP_NUM_THREADS=1 python benchmarks/ranks.py --workers 11 31 63 --repeats 3
    OMP_NUM_THREADS=1 python benchmarks/ranks.py --network small_cnn --workers 31 --epochs 4

Wall time tells only on a machine that has nothing else to do. Beside it stands processor time: what one rank spends
over what the busier of two spends, which others on the machine hardly change, and which leaves out waiting.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace

from autoweight.ranks import of_torchrun
from autoweight.recipes import get_recipe
from autoweight.runs import find

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def search(network: str, workers: int, epochs: int) -> None:
    """On a rank: one short search; the first prints its seconds by the wall and by the busiest processor.

    The clocks run from the first stage's end to the last's, so that what happens once does not count.
    """
    recipe, ranks = get_recipe("digits-noise"), of_torchrun()
    config = replace(
        recipe,
        network=network,
        search=replace(recipe.search, num_workers=workers, num_episodes=1, choice_rounds=1),
        training=replace(recipe.training, epochs=epochs),
    )
    job = find.prepare(config, ranks=ranks)
    clocks: list[tuple[float, float]] = []
    strategy = job.run(None, lambda progress: clocks.append((time.perf_counter(), time.process_time())), ranks)
    wall, cpu = (last - first for first, last in zip(clocks[0], clocks[-1], strict=True))
    cpu = max(ranks.gather(cpu))
    if ranks.first:
        print(json.dumps({"wall": wall, "cpu": cpu, "table": strategy.table.sum().item()}))


def measured(ranks: int, network: str, workers: int, epochs: int) -> dict:
    """A search over so many ranks."""
    words = [*TORCHRUN, str(ranks), __file__, "--network", network, "--workers", str(workers)]
    words += ["--epochs", str(epochs), "--on-a-rank"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="mlp")
    parser.add_argument("--workers", type=int, nargs="+", default=[11, 31, 63])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--on-a-rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.on_a_rank:
        search(arguments.network, arguments.workers[0], arguments.epochs)
        return
    for workers in arguments.workers:
        pairs = [
            [measured(ranks, arguments.network, workers, arguments.epochs) for ranks in (1, 2)]
            for _ in range(arguments.repeats)
        ]
        assert len({one["table"] for pair in pairs for one in pair}) == 1, "the strategies differ"
        ratios = {kind: [one[kind] / two[kind] for one, two in pairs] for kind in ("wall", "cpu")}
        shown = ", ".join(
            f"{kind} {statistics.median(own):.2f} ({min(own):.2f} to {max(own):.2f})" for kind, own in ratios.items()
        )
        alone = statistics.median(one["cpu"] for one, _ in pairs)
        print(
            f"{arguments.network}, {workers} workers: two ranks over one: {shown}; one rank: {alone:.1f} s of cpu; "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
