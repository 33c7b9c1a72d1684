"""A Hugging Face transformer with weights: texts about four topics, 40 % of them labelled wrongly.

python examples/transformers_text.py             weighted by auto, about ten seconds on one core: 80 %
python examples/transformers_text.py none        not weighted: 74 %
python examples/transformers_text.py auto 1      one epoch alone, to see that it runs

Nothing is downloaded: texts, vocabulary and tokenizer are made here, and the network is a small BERT with random
parameters. Replace them by `AutoModelForSequenceClassification.from_pretrained(...)` and rows of your own.
"""

import sys
import tempfile
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

import autoweight as aw
from autoweight.transformers import WeightedTrainer

TOPICS, WORDS, LENGTH = 4, 400, 16


def make_texts(count: int, seed: int) -> tuple[list[str], torch.Tensor]:
    """Texts of common words, of which a third are words that their topic uses more often than others."""
    generator = torch.Generator().manual_seed(seed)
    topics = torch.randint(TOPICS, (count,), generator=generator)
    common = torch.randint(WORDS, (count, LENGTH), generator=generator)
    own = topics.unsqueeze(1) * 40 + torch.randint(40, (count, LENGTH), generator=generator)
    topical = torch.rand(count, LENGTH, generator=generator) < 0.35
    words = torch.where(topical, own, common)
    return [" ".join(f"word{word}" for word in text) for text in words.tolist()], topics


def spoil(labels: torch.Tensor, rate: float, seed: int) -> torch.Tensor:
    """Labels of which that share is wrong."""
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(labels), generator=generator) < rate
    return torch.where(wrong, (labels + torch.randint(1, TOPICS, labels.shape, generator=generator)) % TOPICS, labels)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token a word."""
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *(f"word{i}" for i in range(WORDS))])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")


def make_model(width: int = 32) -> BertForSequenceClassification:
    """A BERT of two layers."""
    size = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 2 * width}
    return BertForSequenceClassification(
        BertConfig(vocab_size=WORDS + 2, max_position_embeddings=64, num_labels=TOPICS, **size)
    )


def make_rows(texts: list[str], labels: torch.Tensor, tokenizer: PreTrainedTokenizerFast) -> list[dict[str, Any]]:
    """What a Trainer takes; a `datasets.Dataset` does as well."""
    return [
        {"input_ids": tokenizer(text)["input_ids"], "labels": int(label)}
        for text, label in zip(texts, labels, strict=True)
    ]


def train(weigher: aw.Weigher | None, seed: int = 0, epochs: int = 10, width: int = 32) -> float:
    """Accuracy on 1,000 new texts after a training, weighted or not."""
    tokenizer = make_tokenizer()
    texts, topics = make_texts(4000, seed)
    rows = make_rows(texts, spoil(topics, 0.4, seed + 1), tokenizer)
    set_seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=64,
            learning_rate=1e-3,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            seed=seed,
        )
        kind = {"processing_class": tokenizer, "train_dataset": rows}
        model = make_model(width)
        plain = weigher is None
        trainer = Trainer(model, args, **kind) if plain else WeightedTrainer(model, args, weigher=weigher, **kind)
        trainer.train()
        new_texts, new_topics = make_texts(1000, seed + 2)
        answers = trainer.predict(make_rows(new_texts, new_topics, tokenizer)).predictions.argmax(axis=1)
    return float((answers == new_topics.numpy()).mean())


if __name__ == "__main__":
    torch.set_num_threads(1)
    words = [*sys.argv[1:], "auto", "10"] if len(sys.argv) < 2 else [*sys.argv[1:], "10"]
    accuracy = train(None if words[0] == "none" else aw.load(words[0]), epochs=int(words[1]))
    print(f"test accuracy {accuracy:.1%}")
