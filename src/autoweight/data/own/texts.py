"""Texts as hashed words: each word is a number below `TEXT_BUCKETS`, so that no vocabulary has to be kept.

`[texts, words]`, 0 where a text has ended. The networks `bag_of_words` and `text_embedding` take them.
"""

import re
from pathlib import Path
from zlib import crc32

import numpy as np
import torch

from autoweight.config import TEXT_BUCKETS, DataConfig
from autoweight.data.own.rows import Content, Encoded, Encoder, Parts, Rows, read_utf8
from autoweight.data.own.tables import TABLES, label_column, load_table, rows_of, trusted_column
from autoweight.data.own.targets import SEPARATOR
from autoweight.errors import look_up, require

_WORD = re.compile(r"\w+|[^\w\s]")
_FASTTEXT = "__label__"
_MOST_WORDS = 256


def read_texts(path: Path, config: DataConfig) -> Parts:
    """Texts with their labels, from a column of a table or the lines of a file."""
    return _column(path, config) if path.suffix.lower() in TABLES else _lines(path)


def encode_texts(content: Content) -> Encoder:
    """As many words of each text as nineteen of twenty training texts have, 256 at most."""
    lengths = [len(_WORD.findall(text)) for text in np.asarray(content).tolist()]
    require(max(lengths, default=0) > 0, "all texts are empty: name another column with --text.")
    length = int(np.clip(np.quantile(lengths, 0.95), 1, _MOST_WORDS))
    buckets: dict[str, int] = {}

    def hashed(text: str) -> list[int]:
        found = _WORD.findall(text.lower())
        for word in found:
            if word not in buckets:
                buckets[word] = crc32(word.encode()) % (TEXT_BUCKETS - 1) + 1
        return [buckets[word] for word in found]

    def encode(part: Content) -> Encoded:
        ids = np.zeros((len(part), length), dtype=np.int64)
        for row, text in enumerate(np.asarray(part).tolist()):
            own = hashed(text)[:length]
            ids[row, : len(own)] = own
        return Encoded(torch.from_numpy(ids))

    return encode


def _column(path: Path, config: DataConfig) -> Parts:
    table = load_table(path)
    column = look_up("column", config.text, table.columns)
    label = label_column(table, path, config)
    require(label != config.text, f"--label and --text both name the column '{label}'.")
    texts = np.array([str(text) for text in column.tolist()], dtype=object)
    return rows_of(table, texts, label, trusted_column(table, label, config))


def _lines(path: Path) -> Parts:
    """A label, a tab and a text on each line; or fastText's `__label__NAME text`, which may name several labels."""
    labels, texts, names = [], [], []
    for number, line in enumerate(read_utf8(path).splitlines(), start=1):
        if not line.strip():
            continue
        named = re.match(rf"(?:{_FASTTEXT}\S+\s+)+", line)
        label, gap, text = (named[0], " ", line[named.end() :]) if named else line.partition("\t")
        require(
            bool(gap), f"line {number} of {path} is not a label, a tab and a text, nor begins with {_FASTTEXT}NAME."
        )
        labels.append(SEPARATOR.join(label.replace(_FASTTEXT, " ").split()) if named else label.strip())
        texts.append(text)
        names.append(f"{path.name}:{number}")
    require(len(texts) > 0, f"{path} is empty.")
    return Parts(Rows.of(np.array(texts, dtype=object), labels, names))
