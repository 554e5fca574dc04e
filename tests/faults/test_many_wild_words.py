"""Ten thousand wild words as names and as arguments; `make test` tries some hundred."""

from pathlib import Path

import wild_words
from server_faults import tell


def test_wild_words_here(tmp_path: Path) -> None:
    tell(wild_words.run_here(tmp_path, 10_000))


def test_wild_words_served(tmp_path: Path) -> None:
    tell(wild_words.served(tmp_path, 10_000))
