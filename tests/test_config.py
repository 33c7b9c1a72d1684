from dataclasses import replace

import pytest

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig
from autoweight.config.files import dump_config, first_difference, load_config
from autoweight.config.presets import PRESETS
from autoweight.errors import UserError
from autoweight.recipes import RECIPES, get_recipe


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_configuration_survives_its_file(tmp_path, recipe, preset):
    config = get_recipe(recipe)
    config = replace(config, search=PRESETS[preset].search(config.search), knobs={"focal": {"gamma": 3.0}})
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(config))
    assert load_config(path) == config


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("noise_rate: 0.4", "noise_rat: 0.4", "unknown key 'noise_rat': did you mean 'noise_rate'?"),
        ("network: mlp", "netwrk: mlp", "unknown key 'netwrk': did you mean 'network'?"),
        ("noise_rate: 0.4", "noise_rate: 1.4", "from 0 to 1, but is 1.4"),
        ("noise_rate: 0.4", "noise_rate: .nan", "data.noise_rate must be a finite number, but is nan"),
        ("noise: uniform", "noise: none", "a data.noise_rate of 0.4 does nothing while data.noise is none"),
        ("imbalance_factor: 1", "imbalance_factor: 50", "a data.imbalance_factor of 50 does nothing"),
        ("noise: uniform", "noise: unifrm", "'none', 'uniform', 'uniform_other', 'asymmetric' or 'cifar10_asymmetric'"),
        ("recipe: digits-noise", "recipe: ../digits", "'../digits' is no name of a recipe"),
        ("epochs: 60", "epochs: 6.5", "training.epochs is 6.5"),
        ("epochs: 60", "epochs: many", "training.epochs is 'many'"),
        ("recipe: digits-noise", "x: 1", "missing"),
        ("recipe: digits-noise", "recipe: [", "not valid YAML: look at line"),
    ],
)
def test_wrong_files_get_one_sentence(tmp_path, old, new, sentence):
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(get_recipe("digits-noise")).replace(old, new, 1))
    with pytest.raises(UserError) as error:
        load_config(path)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").touch()
    with pytest.raises(UserError, match="does not hold"):
        load_config(tmp_path / "empty.yaml")


def test_first_difference_names_key_and_values():
    one = RunConfig(recipe="x")
    assert first_difference(one, RunConfig(recipe="x")) is None
    other = replace(one, training=TrainingConfig(epochs=7))
    assert first_difference(one, other) == "training.epochs was 60 and is now 7"


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataConfig(noise_rate=-0.1),
        lambda: DataConfig(train_size=-1),
        lambda: DataConfig(val_size=-1),
        lambda: DataConfig(imbalance_factor=0.5),
        lambda: TrainingConfig(epochs=0),
        lambda: TrainingConfig(learning_rate=0.0),
        lambda: TrainingConfig(momentum=1.0),
        lambda: TrainingConfig(weight_decay=-1.0),
        lambda: RunConfig(recipe="x", methods=()),
        lambda: RunConfig(recipe="x", methods=("focal", "focal")),
        lambda: RunConfig(recipe="x", num_seeds=0),
        lambda: RunConfig(recipe="x", seed=-1),
        lambda: SearchConfig(num_workers=0),
        lambda: SearchConfig(num_workers=10, num_starts=3),
    ],
)
def test_wrong_values_are_refused(make):
    with pytest.raises(UserError):
        make()
