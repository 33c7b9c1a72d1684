"""Metrics somewhere else as they come: three lines for any service; here they are printed.

python examples/log_elsewhere.py

Weights & Biases:

    wandb.init(project="digits")
    LOGS["wandb"] = lambda folder: lambda line: wandb.log(numbers(line))
    run(["train", "digits-noise", "--method", "auto", "--log", "wandb"])

MLflow, inside `with mlflow.start_run():`

    LOGS["mlflow"] = lambda folder: lambda line: mlflow.log_metrics(numbers(line), step=step_of(line))
    run(["train", "digits-noise", "--method", "auto", "--log", "mlflow"])

TensorBoard needs none of this: `autoweight train digits-noise --method auto --log tensorboard`.
"""

import sys

from autoweight.cli.run import run
from autoweight.runs.log import LOGS, numbers, step_of

LOGS["here"] = lambda folder: lambda line: print(step_of(line), numbers(line).get("auto-0/val_score"))
run(["train", "digits-noise", "--method", "auto", "--training.epochs", "20", "--log", "here", *sys.argv[1:]])
