"""One table of mistakes with own data, flags, fit and streams: each gets one sentence, and no traceback."""

import os
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import default_collate

import autoweight as aw
from autoweight.cli.own import NO_SPLIT
from autoweight.cli.run import run
from autoweight.data.own import load_own
from autoweight.data.streamed import Streamed

from .conftest import make_blobs
from .own_files import PAIRS, Endless, arrays, bad_folder, bytes_file, folder, marked, rows, stream


def read(path: str, task: str = "classification", **settings: object) -> object:
    return load_own(replace(NO_SPLIT, path=path, **settings), task)


def said(*words: str) -> None:
    run(list(words))


OWN_DATA: dict[str, tuple[Callable[[], object], str]] = {
    "nothing there": (
        lambda: read("rows.csv"),
        "there is nothing at rows.csv: give a folder of class folders or a file",
    ),
    "unknown ending": (lambda: read(rows(name="rows.xlsx")), "rows.xlsx is no data that can be read: give a folder"),
    "no path": (lambda: read(""), "data.path is empty: name a folder or a file of your own"),
    "empty file": (lambda: read(rows("")), "rows.csv is empty: a header and rows are expected"),
    "header only": (lambda: read(rows("a,label\n")), "rows.csv holds no rows under its header"),
    "no label named": (
        lambda: read(rows(",a,b\n0,1,2\n")),
        "say which column of rows.csv holds the labels, --label COLUMN: it has a, b",
    ),
    "misspelt label": (lambda: read(rows(), label="lable"), "unknown column 'lable': did you mean 'label'"),
    "misspelt text": (lambda: read(rows(), text="color"), "unknown column 'color': did you mean 'colour'"),
    "label is the text": (lambda: read(rows(), text="label"), "--label and --text both name the column 'label'"),
    "a short line": (lambda: read(rows("a,label\n1,x\n2\n")), "line 3 of rows.csv has 1 fields, but the header has 2"),
    "two columns of a name": (
        lambda: read(rows("a,a,label\n1,2,x\n")),
        "rows.csv has two columns called 'a': rename one",
    ),
    "not UTF-8": (lambda: read(bytes_file("rows.csv", b"a,label\n\xff\xfe,x\n")), "rows.csv is not UTF-8 text"),
    "no label at all": (lambda: read(rows("a,label\n1,\n2, \n")), "not one sample has a label: name another column"),
    "one class": (lambda: read(rows("a,label\n" + "1,x\n2,x\n" * 9)), r"there is one class only \('x'\)"),
    "labels that are numbers": (
        lambda: read(rows("a,label\n" + "".join(f"{place % 7},{place / 9}\n" for place in range(200)))),
        "200 different labels in 200 samples, too many for classes: .* add --training.task regression",
    ),
    "targets that are words": (lambda: read(rows(), "regression"), "rows.csv:2 has the target 'a', which is no number"),
    "the same target": (
        lambda: read(rows("a,label\n" + "1,5\n2,5\n" * 9), "regression"),
        "all targets are the same number",
    ),
    "no usable column": (
        lambda: read(rows("label\n" + "x\ny\n" * 9)),
        "no column besides the label tells the rows apart",
    ),
    "too few to test": (lambda: read(rows("a,label\n1,x\n2,y\n")), "2 samples are too few to split a test part off"),
    "a new class in the test": (
        lambda: read(rows(), test=rows("size,colour,label\n1,r,c\n", "test.csv")),
        "test.csv:2 has the label 'c', which the training data do not have: they have a, b",
    ),
    "a column lacks in the test": (
        lambda: read(rows(), test=rows("colour,label\nr,a\n", "test.csv")),
        "column 'size' of the training data is missing in the other file",
    ),
    "a word among numbers in the test": (
        lambda: read(rows(), test=rows("size,colour,label\nlarge,r,a\n", "test.csv")),
        "column 'size' holds numbers in the training data, but 'large' in another part",
    ),
    "a test of another kind": (lambda: read(rows(), test=folder()), "photos holds images, but rows.csv table"),
    "a test that is not there": (lambda: read(rows(), test="t.csv"), "there is nothing at t.csv"),
    "trusted nowhere": (
        lambda: read(rows(), trusted="chekced"),
        "--trusted names 'chekced', which is neither a file nor part",
    ),
    "no mark": (
        lambda: read(marked("0"), trusted="checked"),
        "'checked' marks no sample as trusted: write 1, true or yes",
    ),
    "all marked": (lambda: read(marked("1"), trusted="checked"), "'checked' marks every sample as trusted"),
    "all texts empty": (
        lambda: read(rows("t,label\n" + ",a\n,b\n" * 9), text="t"),
        "all texts are empty: name another column",
    ),
    "a line without a label": (
        lambda: read(rows("no label here\n", "a.txt")),
        "line 1 of a.txt is not a label, a tab and a text",
    ),
    "an empty text file": (lambda: read(rows("\n", "a.txt")), "a.txt is empty"),
    "text of a folder": (lambda: read(folder(), text="t"), "--text names a column of a table, but photos is a folder"),
    "text of arrays": (lambda: read(arrays(x=1), text="t"), "--text names a column of a table, but a.npz is none"),
    "a broken Parquet file": (lambda: read(rows("no", "a.parquet")), "a.parquet cannot be read as a Parquet file"),
    "a broken npz": (lambda: read(rows("no", "a.npz")), "a.npz cannot be read as .npz"),
    "pickled arrays": (lambda: read(arrays(x=np.array([{}]), y=np.array([0]))), "save plain arrays, without objects"),
    "no x and y": (
        lambda: read(arrays(a=np.ones((3, 2)))),
        "a.npz needs arrays x and y, or train_x and train_y; it has a",
    ),
    "x of one dimension": (lambda: read(arrays(x=np.ones(3), y=np.ones(3))), "x of a.npz needs a dimension of samples"),
    "x of words": (lambda: read(arrays(x=np.array([["a"]]), y=np.ones(1))), "x of a.npz holds <U1, not real numbers"),
    "too few y": (
        lambda: read(arrays(x=np.ones((3, 2)), y=np.ones(2))),
        r"a.npz has 3 inputs, but labels of shape \(2,\)",
    ),
    "marks of another length": (
        lambda: read(arrays(x=np.ones((3, 2)), y=np.ones(3), trusted=np.ones(2))),
        "'trusted' of a.npz marks samples, so it needs one value for each of 3",
    ),
    "NaN in images": (
        lambda: read(arrays(x=np.full((20, 4, 4), np.nan), y=np.arange(20) % 2)),
        "an array of images has a NaN or infinite value",
    ),
    "no class folders": (lambda: read(folder(classes=(), name=".")), "holds no class folders: images are expected as"),
    "an empty class": (lambda: (folder(), os.mkdir("photos/cat"), read("photos")), "photos/cat holds no image"),
    "one class folder": (lambda: read(folder(classes=("ant",), count=9)), r"there is one class only \('ant'\)"),
    "a broken image": (lambda: read(bad_folder()), "photos/bee/1.png cannot be read as an image: replace or remove it"),
    "a trusted image that is not there": (
        lambda: read(folder(), trusted=rows("ant/9.png\n", "list.txt")),
        "list.txt trusts 'ant/9.png', but photos has no such image: write CLASS/FILE on each line",
    ),
    "a streamed table": (lambda: read(rows(), stream=True), "data.stream is for folders of images"),
}

FLAGS: dict[str, tuple[Callable[[], object], str]] = {
    "label of a recipe": (
        lambda: said("train", "digits-noise", "--label", "a"),
        "--label is for data of your own: give their path",
    ),
    "a path that is not there": (lambda: said("train", "no/such.csv"), "there is nothing at no/such.csv"),
    "neither recipe nor path": (
        lambda: said("train", "digits-nose"),
        "unknown recipe 'digits-nose': did you mean 'digits-noise'",
    ),
    "no recipe": (lambda: said("train"), "name a recipe, or the path of your own data, first"),
    "a search without trusted ones": (
        lambda: said("search", rows()),
        "a search needs trusted samples, whose labels were checked",
    ),
    "early_stop without trusted ones": (
        lambda: said("train", rows(), "--method", "early_stop"),
        "early_stop stops where trusted samples say, and there are none: name some with --trusted, or choose another",
    ),
    "an oracle of one's own labels": (
        lambda: said("train", rows(), "--method", "oracle"),
        "oracle must know which labels are wrong, and of yours nobody does: put some in with --data.noise, or choose",
    ),
    "a module that is not there": (
        lambda: said("train", rows(), "--network", "nosuch:make"),
        "there is no module 'nosuch' here",
    ),
    "a file that is not there": (lambda: said("train", rows(), "--network", "my.py:make"), "there is no file my.py"),
    "a function that is not there": (
        lambda: (rows("def make(): pass\n", "net1.py"), said("train", rows(), "--network", "net1.py:mkae")),
        "unknown function of net1.py 'mkae': did you mean 'make'",
    ),
    "a function that fails": (
        lambda: (rows("def make(): 1 / 0\n", "net2.py"), said("train", rows(), "--network", "net2.py:make")),
        "net2.py:make does not build a network: division by zero",
    ),
    "a function of nothing": (
        lambda: (rows("def make(): pass\n", "net3.py"), said("train", rows(), "--network", "net3.py:make")),
        "net3.py:make must return an nn.Module, not NoneType",
    ),
    "a file that fails": (
        lambda: (rows("def make(:\n", "net4.py"), said("train", rows(), "--network", "net4.py:make")),
        "net4.py cannot be imported: ",
    ),
    "texts for a CNN": (
        lambda: said("train", rows(), "--network", "strided_cnn"),
        "this network takes images of shape",
    ),
    "a table for texts": (
        lambda: said("train", folder(), "--network", "text_embedding"),
        "this network takes hashed words",
    ),
    "a share above 1": (
        lambda: said("train", rows(), "--data.test-share", "2"),
        "data.test_share goes from 0 to below 1",
    ),
    "an unknown task": (lambda: said("train", rows(), "--training.task", "clustering"), "unknown task 'clustering'"),
    "a file that is there": (
        lambda: (rows("", "autoweight.yaml"), said("init")),
        "autoweight.yaml is there already: remove it",
    ),
    "an unknown kind of bad": (
        lambda: said("train", rows(), "--data.bad-samples", "drop"),
        "'refuse', 'skip'|refuse.*skip",
    ),
}


def fit(data: object = None, make_model: object = lambda: nn.Linear(2, 3), **options: object) -> object:
    training = aw.TrainingConfig(epochs=2, batch_size=16, num_stages=2)
    return aw.fit(make_model, make_blobs() if data is None else data, **{"training": training, **options})


FIT: dict[str, tuple[Callable[[], object], str]] = {
    "a network, not a function": (
        lambda: fit(make_model=nn.Linear(2, 3)),
        "make_model is a callable that returns a fresh",
    ),
    "an unknown strategy": (lambda: fit(weigher="atuo"), "unknown strategy 'atuo': did you mean 'auto'"),
    "no weigher": (
        lambda: fit(weigher=3),
        "weigher takes the name of a shipped strategy, a file, a weigher or None, but is 3",
    ),
    "capital letters": (
        lambda: aw.TrainingConfig(optimizer="AdamW"),
        "unknown optimizer 'AdamW': did you mean 'adamw'",
    ),
    "no training": (lambda: fit(training={"epochs": 3}), "training takes an aw.TrainingConfig"),
    "a seed below 0": (lambda: fit(seed=-1), "seed goes from 0 to 2147483647, but is -1"),
    "an unknown device": (lambda: fit(device="gpu"), "there is no device 'gpu' here"),
    "a checkpoint that is a folder": (lambda: fit(checkpoint="."), "checkpoint takes a file, but '.' is a folder"),
    "an iterable": (
        lambda: fit(Endless()),
        "the training data cannot be used: .* not an IterableDataset: it cannot be shuffled",
    ),
    "an empty set": (lambda: fit([]), "the data set is empty"),
    "a validation set of another shape": (
        lambda: fit(val_data=(torch.zeros(9, 5), torch.arange(9) % 3)),
        "training inputs are .* but validation inputs .*: make them alike",
    ),
    "validation labels of words": (
        lambda: fit(val_data=[(torch.zeros(2), "a")] * 4),
        "the validation data cannot be used: ",
    ),
    "a large batch": (lambda: fit(make_blobs(9)), "a batch of 16 is larger than the training set of 9"),
    "streamed tensors": (
        lambda: fit((torch.zeros(20, 2), torch.arange(20) % 3), stream=True),
        "tensors lie in memory: there is nothing to stream or collate",
    ),
    "stream is no word": (lambda: fit(stream="yes"), "stream is True, False or None, but is 'yes'"),
    "memory and a collate_fn": (
        lambda: fit([(torch.zeros(2), 0)] * 20, stream=False, collate_fn=list),
        "a collate_fn makes batches as they come: leave out stream=False",
    ),
    "a misspelt word for bad ones": (lambda: fit(bad_samples="skp"), "bad_samples is refuse or skip, but is 'skp'"),
    "workers below 0, in memory": (lambda: fit(num_workers=-1), "num_workers is a number of processes, 0 or more"),
    "a listener that is none": (lambda: fit(listen=5), "listen is a function of one report after another, but is 5"),
    "a network of float64": (
        lambda: fit(make_model=lambda: nn.Linear(2, 3).double()),
        r"cannot take torch.float32 inputs .*\(data of float64 are read as float32: make the network so, too\)",
    ),
    "a row without a label": (lambda: fit([{"x": torch.zeros(2)}] * 20, stream=True), "a dict row has its label under"),
    "rows of three": (lambda: fit([(torch.zeros(2), 0, 1)] * 20, stream=True), "but this one is a tuple of 3"),
}


STREAMS: dict[str, tuple[Callable[[], object], str]] = {
    "inputs of different sizes": (
        lambda: stream([(torch.zeros(2 + place % 2), 0) for place in range(20)]),
        r"samples cannot be put into one batch: stack expects each tensor to be equal size, but got \[2\] .* and \[3\]",
    ),
    "text as an input": (
        lambda: stream([({"t": "a word"}, 0)] * 20),
        r"an input is text \('a word'\): turn it into numbers",
    ),
    "a failing collate_fn": (lambda: stream(PAIRS, collate_fn=lambda batch: 1 / 0), "into one batch: division by zero"),
    "a collate_fn of nothing": (lambda: stream(PAIRS, collate_fn=lambda batch: None), "but this one is a NoneType"),
    "a collate_fn that makes no batch": (
        lambda: stream(PAIRS, collate_fn=list),
        r"as many rows as it was given, 2, but its inputs are of shape \(2,\) and \(\)",
    ),
    "a collate_fn that drops a sample": (
        lambda: stream(PAIRS, collate_fn=lambda batch: default_collate(batch[1:])),
        r"as many rows as it was given, 2, but its inputs are of shape \(1, 2\)",
    ),
    "a collate_fn that is none": (
        lambda: stream(PAIRS, collate_fn=3),
        "collate_fn is a function of a list of samples, but is 3",
    ),
    "workers below 0": (
        lambda: stream(PAIRS, num_workers=-1),
        "num_workers is a number of processes, 0 or more, but is -1",
    ),
    "an unknown word for bad ones": (
        lambda: stream(PAIRS, bad_samples="drop"),
        "bad_samples is refuse or skip, but is 'drop'",
    ),
    "labels of words": (
        lambda: stream([(torch.zeros(2), "a")] * 20),
        "labels are text, such as 'a': number the classes from 0 on, as np.unique",
    ),
    "too few labels": (lambda: Streamed.of(PAIRS, labels=[0, 1]), "there are 2 labels, but 20 samples"),
    "tokens": (lambda: Streamed.of(PAIRS, task="tokens"), "classes of tokens cannot be streamed: pass tensors"),
    "nothing can be read": (lambda: stream([None] * 3, bad_samples="skip"), "but this one is a NoneType"),
}


@pytest.mark.parametrize(
    ("call", "message"),
    [*OWN_DATA.values(), *FLAGS.values(), *FIT.values(), *STREAMS.values()],
    ids=[*OWN_DATA, *FLAGS, *FIT, *STREAMS],
)
@pytest.mark.filterwarnings("ignore:.*")
def test_one_sentence(call, message, tmp_path):
    with chdir(tmp_path), pytest.raises(aw.UserError, match=message) as error:
        call()
    assert "\n" not in str(error.value).strip()
