"""A run's folder that ranks share: the first opens and locks it, and the others see what it writes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from autoweight.config import RunConfig
from autoweight.errors import require
from autoweight.ranks import Ranks
from autoweight.runs.folder import RunFolder
from autoweight.storage.atomic import write_bytes

_PATIENCE = 10.0  # seconds that a file may take to show on another machine
_POLL = 0.1


def resumes(path: Path | None, resume: bool, ranks: Ranks) -> bool:
    """Whether to go on with the folder's run: as asked for, or because torchrun has started the ranks anew."""
    restarted = ranks.restarts > 0 and path is not None and (path / "config.yaml").exists()
    return ranks.share(resume or restarted)


def is_finished(path: Path | None, resume: bool, config: RunConfig | None, ranks: Ranks) -> bool:
    """Whether all that is left is to show the result, which needs neither data nor device.

    A search, whose `config` is given, is not finished where it is to run more episodes than it has.
    """
    if not resume or path is None or not (path / "result.json").exists():
        return ranks.share(False)
    return ranks.share(config is None or not RunFolder(path).is_to_go_on(config))


@contextmanager
def opened(path: Path | None, config: RunConfig, resume: bool, ranks: Ranks) -> Iterator[RunFolder]:
    """The folder to work in, locked; on other ranks than the first, once that has opened it."""
    require(
        path is not None or ranks.size == 1,
        "ranks need --out FOLDER: all machines have to share it, and a restart has to find it again.",
    )
    if ranks.first:
        with RunFolder.open(path, config, resume) as folder:
            folder.take_in_ranks()
            _check_shared(folder.path, ranks)
            yield folder
    else:
        assert path is not None
        _check_shared(path, ranks)
        yield RunFolder(path, ranks.rank)


def _check_shared(path: Path, ranks: Ranks) -> None:
    """Raise `UserError` unless every rank sees what the first writes."""
    if ranks.size == 1 or ranks.share((path / "result.json").exists()):
        return
    token, of_first = ranks.share((token_hex(8), str(path)))
    place = path / ".ranks"
    if ranks.first:
        write_bytes(place, token.encode())
    ranks.share(None)  # it is there
    blind = [rank for rank, sees in enumerate(ranks.gather(_shows(place, token))) if not sees]
    require(
        not blind,
        f"rank {', '.join(map(str, blind))} does not see what rank 0 writes to {of_first}: choose an --out that all "
        "machines share.",
    )
    if ranks.first:
        place.unlink()


def _shows(place: Path, token: str) -> bool:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if place.exists() and place.read_text() == token:
            return True
        time.sleep(_POLL)
    return False
