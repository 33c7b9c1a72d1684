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

    warnings.showwarning = lambda message, *rest, **more: print(f"autoweight: {message}", file=sys.stderr)
    try:
        run(sys.argv[1:])
    except UserError as error:
        print(f"autoweight: {error}", file=sys.stderr)
        sys.exit(2)
    except RunError as error:
        print(f"autoweight: {error}", file=sys.stderr)
        sys.exit(1)
    except torch.OutOfMemoryError:
        about = "search.num_workers, training.batch_size or --side-by-side"
        print(f"autoweight: the GPU's memory is full: lower {about}.", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:  # somebody reads only the first lines, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # a full disk, for one
        print(f"autoweight: {error}. Once that is mended, --resume goes on with a run.", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt as interruption:
        print(f"\nautoweight: interrupted. {interruption}".rstrip(), file=sys.stderr)
        sys.exit(130)
