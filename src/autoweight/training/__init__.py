"""Training one network: schedule, step, loop, evaluation, checkpoints."""
