"""What the CIFAR recipes share: the paper's schedule, and a search on a small proxy."""

from dataclasses import replace

from autoweight.config import CmaesConfig, DataConfig, SearchConfig, TrainingConfig
from autoweight.config.presets import losses, noise, rare

PAPER_TRAINING = TrainingConfig(epochs=200, batch_size=128, weight_decay=2e-5, precision="bfloat16", compile=True)

NOISE_DATA = DataConfig(
    dataset="cifar10",
    train_size=5_000,  # of the proxy; the paper's has 20,000
    val_size=5_000,
    train_on_all=True,
    noise="uniform",
    noise_rate=0.4,
    augmentation="crop_flip",
)

# A small, short proxy agrees with a long training where its network has learned something before weighting begins, and
# is about to memorise: so there is a head start, and few images (docs/lab-notes.md: what proxies can foresee).
_PROXY = SearchConfig(
    proxy_network="small_resnet64",
    proxy_epochs=100,
    num_workers=11,
    num_episodes=6,
    choice_rounds=2,
    reward_growth=10.0,  # the end counts
)
NOISE_SEARCH = losses(replace(_PROXY, head_start=8))
# Margins are on an absolute scale: a proxy has to learn about as well as the training, by more images in fewer epochs.
TODAY_SEARCH = noise(replace(_PROXY, proxy_epochs=50))

# 50 images a class might be too few: not tried. These memorise because they are not augmented.
NOISE_DATA_100 = replace(NOISE_DATA, dataset="cifar100", train_size=10_000)
NOISE_SEARCH_100 = SearchConfig(
    proxy_network="small_resnet",
    proxy_epochs=40,
    head_start=18,
    augment_stages=False,
    num_workers=15,
    num_episodes=10,
    choice_rounds=2,
)

# In trials on long tails, by validation accuracy, weights of inverse frequency were worth more from the learning rate's
# first drop on than from the start, so only those stages are searched: each recipe has its warm-up. Up to there one
# network stands for all, which is cheap.
RARE_DATA = DataConfig(
    dataset="cifar10", train_size=40_000, val_size=5_000, train_on_all=True, augmentation="crop_flip"
)
RARE_SEARCH = rare(
    SearchConfig(
        proxy_network="small_resnet",
        episode_share=1.0,
        num_workers=15,
        num_episodes=7,
        choice_rounds=2,
        cmaes=CmaesConfig(coarse_share=0.45),
        reward_growth=10.0,  # the accuracies after the last drop count
    )
)

# Table 5's 100 epochs and drops. The authors count epochs on the balanced set, four times as large, and decay by 5e-4.
# ResNet-32 is bound by small kernels: compiled it is no faster.
LONGTAIL_TRAINING = replace(PAPER_TRAINING, epochs=400, weight_decay=5e-4, drop_stages=(14, 18), compile=False)
LONGTAIL_SEARCH = replace(RARE_SEARCH, warmup_stages=14, proxy_epochs=90)
# Where few classes are rare, a frequency normalised over the batch makes steps far too large (docs/search.md), and
# heeding losses leaves nothing to win on a proxy that memorises, as a full training does (docs/lab-notes.md).
IMBALANCE_SEARCH = replace(
    RARE_SEARCH,
    features=("label",),
    label_feature="class_frequency",
    warmup_stages=10,
    proxy_epochs=100,
    head_start=8,
    num_episodes=5,
    cmaes=replace(RARE_SEARCH.cmaes, coarse_share=0.6),
)
