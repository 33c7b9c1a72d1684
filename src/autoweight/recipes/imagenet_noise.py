"""Noisy ImageNet: 40 % of the labels redrawn, searched on 100 images a class, then transferred (Table 3).

    autoweight search imagenet-noise --data-dir DIR --data.workers 16 --device cuda
    autoweight train imagenet-noise --data-dir DIR --data.workers 16 --device cuda --method uniform
    autoweight train imagenet-noise --data-dir DIR --data.workers 16 --device cuda --method law --strategy FILE

The latter two with --network torchvision:resnet34, torchvision:resnet50 or torchvision:mobilenet_v2 for the transfer.
DIR has ImageNet's layout, train/CLASS/*.JPEG and val/CLASS/*.JPEG; val is tested on. Images are streamed. Several GPUs
share the work under torchrun. For a set of 200 classes of 64 x 64 pixels in that layout, add to each of them

    --data.image-size 64 --data.val-size 2000 --network resnet18

Cost      not measured: nobody here has ImageNet. A search trains 64 ResNet-18s, each on 90,000 images for 70 epochs,
          and then chooses; 1,024 images of eight networks at a time need a large GPU, or several.
Expect    what the paper has, without weights and with: ResNet-18 64.7 and 65.2 %, ResNet-34 65.4 and 66.5 %, ResNet-50
          71.9 and 73.7 %, MobileNet-V2 59.3 and 60.3 %.
"""

from autoweight.config import DataConfig, RunConfig, SearchConfig, TrainingConfig
from autoweight.config.presets import noise

RECIPE = RunConfig(
    recipe="imagenet-noise",
    data=DataConfig(
        dataset="imagefolder",
        stream=True,
        workers=8,
        per_class=100,
        train_size=0,
        val_size=10_000,
        train_on_all=True,
        noise="uniform",
        noise_rate=0.4,
        augmentation="resized_crop_flip",
    ),
    network="torchvision:resnet18",
    training=TrainingConfig(
        epochs=100,
        batch_size=1024,
        weight_decay=2e-5,
        num_stages=20,
        drop_stages=(6, 12, 18),
        warmup_epochs=2.0,
        precision="bfloat16",
    ),
    search=noise(SearchConfig(num_workers=7, num_episodes=8)),
    methods=("uniform", "law", "oracle"),
)
