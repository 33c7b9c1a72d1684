"""Noisy ImageNet: 40 % of the labels redrawn, searched on 100 images a class, then transferred (Table 3).

    autoweight search imagenet-noise --data-dir DIR --device cuda
    autoweight train imagenet-noise --data-dir DIR --device cuda --method law --strategy FILE --network timm:resnet50

Not measured: the images must fit into memory, which those of a subset do and those of the whole set do not.
"""

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig

RECIPE = RunConfig(
    recipe="imagenet-noise",
    data=DataConfig(
        dataset="imagefolder",
        train_size=90_000,
        val_size=10_000,
        train_on_all=True,
        noise="uniform",
        noise_rate=0.4,
        augmentation="crop_flip",
    ),
    network="torchvision:resnet18",
    training=TrainingConfig(
        epochs=100, batch_size=1024, weight_decay=2e-5, drop_stages=(6, 12, 18), precision="bfloat16"
    ),
    search=SearchConfig(num_workers=7, num_episodes=8),
    methods=("uniform", "law", "oracle"),
)
