"""What the CIFAR recipes share: the paper's schedule, and a search on a small proxy."""

from dataclasses import replace

from autoweight.config import DataConfig, SearchConfig, TrainingConfig

PAPER_TRAINING = TrainingConfig(epochs=200, batch_size=128, weight_decay=2e-5, precision="bfloat16", compile=True)

NOISE_DATA = DataConfig(
    dataset="cifar10",
    train_size=10_000,  # of the proxy; the paper's has 20,000
    val_size=5_000,
    train_on_all=True,
    noise="uniform",
    noise_rate=0.4,
    augmentation="crop_flip",
)

# A small, short proxy agreed with a long training where its network had learned something before weighting began, and
# then saw images without augmentation, which it soon memorises (docs/results.md).
NOISE_SEARCH = SearchConfig(
    proxy_network="small_resnet",
    proxy_epochs=40,
    head_start=18,
    augment_stages=False,
    num_workers=15,
    num_episodes=10,
    choice_rounds=2,
)

# Tried for long tails only. The label tells what is rare; normalised weights were better on digits with rare classes.
RARE_DATA = DataConfig(
    dataset="cifar10", train_size=40_000, val_size=5_000, train_on_all=True, augmentation="crop_flip"
)
RARE_SEARCH = SearchConfig(
    features=("loss", "entropy", "label"),
    normalise=True,
    proxy_network="small_resnet",
    proxy_epochs=30,
    head_start=18,
    num_workers=15,
    num_episodes=10,
    choice_rounds=2,
)

# Table 5's 100 epochs and drops. The authors count epochs on the balanced set, four times as large, and decay by 5e-4.
# ResNet-32 is bound by small kernels: compiled it is no faster.
LONGTAIL_TRAINING = replace(PAPER_TRAINING, epochs=400, weight_decay=5e-4, drop_stages=(14, 18), compile=False)

# In trials on validation images, weights of inverse frequency were worth more from the first drop of the learning rate
# on than from the start, so only those stages are searched; up to there one network stands for all, which is cheap.
LONGTAIL_SEARCH = replace(
    RARE_SEARCH,
    warmup_stages=14,
    episode_share=1.0,
    proxy_epochs=90,
    head_start=0,
    num_episodes=7,
    coarse_share=0.45,
    start_bias=-4.0,  # powers of the frequency: a search around 0 missed them (docs/results.md)
    sigma=0.1,
    reward_growth=10.0,  # the accuracies after the second drop count
)
