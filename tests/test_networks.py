"""The networks for small images: sizes from the papers, gradients everywhere, and fit for every kind of worker."""

import re
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state
from torch.nn.functional import cross_entropy

from autoweight.errors import UserError
from autoweight.models import NETWORKS, make_network
from autoweight.models.layers import BlockShape
from autoweight.models.resnet import PaddedShortcut

IMAGE = (3, 32, 32)
# Parameters at 10 classes, and the width of the linear layer's input; all derived by hand.
SIZES = {
    "small_resnet": (308_650, 128),
    "small_resnet64": (1_227_594, 256),
    "resnet32": (464_154, 64),
    "resnet18": (11_173_962, 512),
    "resnet34": (21_282_122, 512),
    "resnet50": (23_520_842, 2048),
    "resnet101": (42_512_970, 2048),
    "wrn_28_10": (36_479_194, 640),
    "vgg19": (20_040_522, 512),
    "mobilenet_v2": (2_236_682, 1280),
}
# Resolution before the average, for images of 32 pixels.
FINAL_PIXELS = {"small_resnet": 8, "small_resnet64": 8, "resnet32": 8, "wrn_28_10": 8, "vgg19": 1}
SMALL = ["small_resnet", "resnet32"]
LIGHT = [*SMALL, "mobilenet_v2", "resnet18"]


def images(batch: int = 2, shape: tuple[int, ...] = IMAGE) -> torch.Tensor:
    return torch.randn(batch, *shape, generator=torch.Generator().manual_seed(0))


def on_meta(name: str, num_classes: int = 10, shape: tuple[int, ...] = IMAGE) -> nn.Module:
    """The network without its numbers: instant, whatever its size."""
    with torch.device("meta"):
        return make_network(name, shape, num_classes)


@pytest.mark.parametrize("name", SIZES)
def test_number_of_parameters(name):
    at_10, features = SIZES[name]
    for num_classes in (10, 100):
        count = sum(param.numel() for param in on_meta(name, num_classes).parameters())
        assert count == at_10 + (num_classes - 10) * (features + 1)


@pytest.mark.parametrize("name", SIZES)
def test_resolution_before_the_head(name):
    model = on_meta(name)
    assert isinstance(model, nn.Sequential)
    pixels = FINAL_PIXELS.get(name, 4)
    assert model[:-2](torch.empty(2, *IMAGE, device="meta")).shape == (2, SIZES[name][1], pixels, pixels)


@pytest.mark.parametrize("name", SIZES)
def test_listed_size_is_true(name):
    listed = re.search(r"(\d+\.\d+) M parameters", NETWORKS[name].__doc__ or "")
    assert listed
    assert float(listed[1]) == pytest.approx(SIZES[name][0] / 1e6, rel=0.02)


@pytest.mark.parametrize("name", SIZES)
def test_forward_and_backward(name):
    torch.manual_seed(0)
    model = make_network(name, IMAGE, 10)
    batch = 1 if name in ("resnet101", "wrn_28_10") else 2
    logits = model(images(batch))
    assert logits.shape == (batch, 10)
    assert logits.isfinite().all()
    cross_entropy(logits, torch.arange(batch)).backward()
    for param in model.parameters():
        assert param.grad is not None
        assert param.grad.isfinite().all()
        assert param.grad.any()


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 64, 48), (1, 8, 8)])
def test_other_images(name, shape):
    assert on_meta(name, 7, shape)(torch.empty(2, *shape, device="meta")).shape == (2, 7)


@pytest.mark.parametrize("name", LIGHT)
def test_channels_last_changes_nothing(name):
    model = make_network(name, IMAGE, 10).eval()
    with torch.no_grad():
        expected = model(images())
        model.to(memory_format=torch.channels_last)
        actual = model(images().to(memory_format=torch.channels_last))
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", LIGHT)
def test_bf16_autocast(name):
    model = make_network(name, (3, 16, 16), 10)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(images(shape=(3, 16, 16)))
        loss = cross_entropy(logits, torch.arange(2))
    loss.backward()
    assert logits.dtype == torch.bfloat16
    assert all(param.grad is not None and param.grad.isfinite().all() for param in model.parameters())


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("training", [False, True])
def test_stacked_copies_equal_a_loop(name, training):
    models = [make_network(name, IMAGE, 10).train(training) for _ in range(2)]
    params, buffers = stack_module_state(models)
    inputs = images(4)

    def forward(params, buffers):
        return functional_call(models[0], (params, buffers), inputs)

    with torch.no_grad():
        stacked = torch.vmap(forward)(params, buffers)
        looped = torch.stack([model(inputs) for model in models])
    torch.testing.assert_close(stacked, looped, rtol=1e-3, atol=1e-4)
    for key, buffer in buffers.items():
        torch.testing.assert_close(buffer, torch.stack([model.get_buffer(key) for model in models]))


def test_shortcut_without_parameters():
    inputs = images(2, (2, 4, 4))
    outputs = PaddedShortcut(BlockShape(inputs=2, outputs=5, stride=2))(inputs)
    assert torch.equal(outputs[:, :2], inputs[:, :, [0, 2]][..., [0, 2]])
    assert outputs.shape == (2, 5, 2, 2)
    assert not outputs[:, 2:].any()


def test_he_initialisation():
    torch.manual_seed(0)
    for module in make_network("mobilenet_v2", IMAGE, 10).modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 5000:
            fan_out = module.out_channels // module.groups * module.kernel_size[0] ** 2
            assert module.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.06)


def test_depth_in_the_name():
    """Layers with weights on the longest path: shortcuts do not count."""
    for name, depth in {"resnet18": 18, "resnet50": 50, "resnet101": 101, "resnet32": 32, "vgg19": 17}.items():
        layers = [
            key
            for key, module in on_meta(name).named_modules()
            if isinstance(module, nn.Conv2d | nn.Linear) and "shortcut" not in key
        ]
        assert len(layers) == depth  # VGG has one linear layer here, not three


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("resnet19", IMAGE, "unknown network 'resnet19': did you mean 'resnet18'?"),
        ("wrn28_10", IMAGE, "unknown network 'wrn28_10': did you mean 'wrn_28_10'?"),
        ("torchvison:resnet50", IMAGE, "unknown network library 'torchvison': did you mean 'torchvision'?"),
        (
            "resnet18",
            (64,),
            "this network takes images of shape (channels, height, width), not inputs of shape (64,): "
            "choose another network, such as 'mlp'.",
        ),
    ],
)
def test_messages(name, shape, message):
    with pytest.raises(UserError) as error:
        make_network(name, shape, 10)
    assert str(error.value) == message


@pytest.mark.parametrize("library", ["torchvision", "timm"])
def test_missing_library(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError) as error:
        make_network(f"{library}:resnet50", (3, 224, 224), 10)
    assert str(error.value) == f"networks of {library} need {library}: pip install {library}"


def test_library_built_for_another_torch(tmp_path, monkeypatch):
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"timm does not fit torch .*, install its build for it: operator"):
        make_network("timm:resnet50", (3, 224, 224), 10)


@pytest.fixture
def made(monkeypatch) -> list[tuple[str, dict[str, object]]]:
    """Both libraries replaced by stand-ins that only note what they are asked for."""
    calls = []

    def make(name: str, **options: object) -> nn.Module:
        calls.append((name, options))
        return nn.Identity()

    def list_models(module: object = None) -> list[str]:
        return ["alexnet", "googlenet", "resnet50", "resnet101"]

    models = SimpleNamespace(list_models=list_models, get_model=make)
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(models=models))
    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(list_models=list_models, create_model=make))
    return calls


def test_networks_of_other_libraries(made):
    assert isinstance(make_network("torchvision:resnet50", (3, 224, 224), 7), nn.Module)
    make_network("torchvision:googlenet", (3, 224, 224), 7)
    make_network("timm:resnet50", (1, 224, 224), 7)
    assert made == [
        ("resnet50", {"weights": None, "num_classes": 7}),
        ("googlenet", {"weights": None, "num_classes": 7, "aux_logits": False, "init_weights": True}),
        ("resnet50", {"pretrained": False, "num_classes": 7, "in_chans": 1}),
    ]


@pytest.mark.parametrize("library", ["torchvision", "timm"])
def test_unknown_network_of_another_library(library, made):
    with pytest.raises(UserError) as error:
        make_network(f"{library}:resnet51", (3, 224, 224), 10)
    assert str(error.value) == f"unknown {library} network 'resnet51': did you mean 'resnet50'?"
    assert not made


def test_torchvision_takes_three_channels(made):
    with pytest.raises(UserError, match=r"3 channels, not 1: .* 'timm:resnet50'"):
        make_network("torchvision:resnet50", (1, 224, 224), 10)
    assert not made
