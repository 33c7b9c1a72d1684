"""Every Python block of the documentation runs, page by page, from top to bottom."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
PART = re.compile(r"^<!-- prelude\n(?P<prelude>.*?)^-->|^```python\n(?P<block>.*?)^```", re.MULTILINE | re.DOTALL)
"""A block, or what the blocks below it need, in a comment that readers do not see."""


def parts_of(path: Path) -> list[tuple[int, str]]:
    """What a page runs, each with the line that it begins at."""
    text = path.read_text()
    return [
        (text[: found.start()].count("\n") + 1, found["prelude"] or found["block"]) for found in PART.finditer(text)
    ]


PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if parts_of(path)]
if "<!-- prelude" in (ROOT / "README.md").read_text():
    PAGES.append(ROOT / "README.md")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of what the pages integrate with
def test_the_blocks_of_a_page_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names = {"__name__": "__page__"}
    for line, code in parts_of(path):
        exec(compile("\n" * line + code, str(path), "exec"), names)


def test_no_block_escapes():
    """Blocks that are indented, or written in another way, would not be run."""
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        blocks = sum(not code.isspace() for _, code in parts_of(path))
        preludes = path.read_text().count("<!-- prelude")
        assert (
            len(re.findall(r"(?i)```+\s*\{?(?:code-block\}\s*)?(?:python|py)\b", path.read_text())) + preludes == blocks
        ), path
