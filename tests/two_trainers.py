"""Hugging Face's Trainer in two processes on a CPU; test_integrations_transformers.py looks at what they wrote.

Both are forked from one that has imported everything, as torchrun's would each do for themselves.
"""

import gc
import multiprocessing
import os
import sys
import warnings
from pathlib import Path

import torch
from torch.distributed import TCPStore
from torch.nn.functional import pad
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    TrainingArguments,
    set_seed,
)

import autoweight as aw
from autoweight.transformers import WeightedTrainer
from tests.counting import Counting

SIZE = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 16}


def words(count):
    return torch.randint(30, (count, 8), generator=torch.Generator().manual_seed(0))


def sentences(count):
    return [{"input_ids": ids, "labels": ids.sum() % 3} for ids in words(count)]


def tagged(count):
    """Sentences of one to seven tokens, each with a label but the first of some."""
    rows = [{"input_ids": ids[: 1 + i % 7], "labels": ids[: 1 + i % 7] % 3} for i, ids in enumerate(words(count))]
    for row in rows[::5]:
        row["labels"][0] = -100
    return [row | {"attention_mask": torch.ones_like(row["labels"])} for row in rows]


def collate(rows):
    """Pad to the longest of a batch, rounded up: processes need not have tensors of one shape."""
    if rows[0]["labels"].dim() == 0:
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    length = -(-max(len(row["labels"]) for row in rows) // 4) * 4
    fill = {"input_ids": 0, "labels": -100, "attention_mask": 0}
    return {
        name: torch.stack([pad(row[name], (0, length - len(row[name])), value=value) for row in rows])
        for name, value in fill.items()
    }


CASES = {  # network, rows, weigher, accumulated batches
    "by the batch": (BertForSequenceClassification, sentences(64), lambda: aw.Constant(loss=-2.0), 2),
    "remembered": (BertForSequenceClassification, sentences(43), Counting, 1),
    "tokens": (BertForTokenClassification, tagged(64), Counting, 2),
}
"""What is trained; 43 sentences do not fill the last batch, so that samplers take some again."""


def trained(case: str, folder: str, processes: int) -> dict:
    """A short training with batches of 16 over all processes: its parameters, gradients and memory."""
    network, rows, make_weigher, times = CASES[case]
    set_seed(0)
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "save_strategy": "no", "logging_steps": 1}
    settings = {"per_device_train_batch_size": 16 // processes // times, "gradient_accumulation_steps": times}
    args = TrainingArguments(folder, **quiet, **settings, num_train_epochs=3, optim="sgd", learning_rate=0.1)
    weigher, model = make_weigher(), network(BertConfig(num_labels=3, **SIZE, **STILL))
    trainer = WeightedTrainer(model, args, train_dataset=rows, data_collator=collate, weigher=weigher)
    trainer.train()
    return {
        "params": torch.cat([one.detach().flatten() for one in model.parameters()]),
        "grad_norms": [line["grad_norm"] for line in trainer.state.log_history if "grad_norm" in line],
        "sizes": getattr(weigher, "sizes", []),
        "memory": weigher.state_dict(),
    }


def rank_of_two(rank: int, port: int, folder: str) -> None:
    """What one of the processes does."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": True}
    own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "TORCHELASTIC_RUN_ID": "test"}
    os.environ |= {name: str(value) for name, value in {**meeting, **own}.items()}
    torch.save({case: trained(case, folder, 2) for case in CASES}, Path(folder) / f"{rank}.pt")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    gc.collect = lambda *args: 0  # a Trainer collects garbage at its end, which takes longer than these trainings
    torch.set_num_threads(1)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # torchrun's outlives the ranks
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=rank_of_two, args=(rank, store.port, sys.argv[1])) for rank in (0, 1)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(120)
    sys.exit(max(1 if process.exitcode is None else abs(process.exitcode) for process in ranks))
