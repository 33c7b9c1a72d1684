"""What the paper measured, for the tables that stand beside it."""

CLEAN, NOISE, LONGTAIL = "clean", "40 % of labels redrawn", "long tail, factor 100"
PEOPLE = "labels by people, the worst of three"
STEP10, STEP100 = "classes 0 to 1 cut by 25", "classes 0 to 9 cut by 10"

PAPER: dict[tuple[str, str, str], dict[str, float]] = {
    ("cifar10", NOISE, "resnet18"): {"uniform": 79.44, "law": 86.33},
    ("cifar100", NOISE, "resnet18"): {"uniform": 55.18, "law": 61.27},
    ("cifar10", NOISE, "wrn_28_10"): {"uniform": 76.77, "focal": 74.12, "self_paced": 86.21, "law": 89.73},
    ("cifar100", NOISE, "wrn_28_10"): {"uniform": 53.11, "focal": 50.71, "self_paced": 46.23, "law": 68.23},
    ("cifar10", LONGTAIL, "resnet32"): {"focal": 71.34, "class_balanced": 74.6, "law": 76.34},
    ("cifar100", LONGTAIL, "resnet32"): {"focal": 39.41, "class_balanced": 40.16, "law": 43.61},
    ("cifar10", STEP10, "resnet18"): {"uniform": 85.93, "law": 88.44},
    ("cifar10", STEP10, "vgg19"): {"uniform": 84.88, "law": 85.33},
    ("cifar100", STEP100, "resnet18"): {"uniform": 60.24, "law": 61.94},
    ("cifar100", STEP100, "vgg19"): {"uniform": 59.33, "law": 60.20},
}
"""Accuracies of Tables 1, 2, 4 and 5 of Li et al., Learning to Auto Weight, AAAI 2020."""
