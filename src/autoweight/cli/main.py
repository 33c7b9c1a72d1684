"""The entry point: turns errors into one sentence and an exit status."""

import os
import sys
import warnings
from importlib.util import find_spec

from autoweight.errors import RunError, UserError

_EXTRAS = ("tyro", "pydantic", "yaml", "rich")


def main() -> None:
    """Run the command line; 2 is the user's mistake, 1 a failed run, 130 an interruption."""
    if not all(find_spec(name) for name in _EXTRAS):
        sys.exit("autoweight: the command line needs more packages: pip install 'autoweight[cli]'")
    import torch

    from autoweight.cli.run import run
    from autoweight.ranks import leave

    # Recipes say how many read; torch says of each loader that so many are more than there are cores.
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    warnings.showwarning = lambda message, *rest, **more: _say(str(message))
    try:
        run(sys.argv[1:])
        leave()
    except UserError as error:
        _say(str(error))
        sys.exit(2)
    except RunError as error:
        _say(str(error))
        sys.exit(1)
    except torch.OutOfMemoryError:
        _say("the GPU's memory is full: lower search.num_workers, training.batch_size or --side-by-side.")
        sys.exit(1)
    except BrokenPipeError:  # somebody reads only the first lines, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # a full disk, for one
        _say(f"{error}. Once that is mended, --resume goes on with a run.")
        sys.exit(1)
    except KeyboardInterrupt as interruption:
        _say(f"interrupted. {interruption}".rstrip(), before="\n")
        sys.exit(130)


def _say(sentence: str, before: str = "") -> None:
    """Print a sentence, once for all ranks."""
    from autoweight.ranks import of_torchrun

    try:
        told = not of_torchrun().is_first_to_say(sentence)
    except (UserError, RuntimeError):  # no ranks to ask
        told = False
    if not told:
        print(f"{before}autoweight: {sentence}", file=sys.stderr)
