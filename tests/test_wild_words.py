"""Wild words as names and arguments, some hundred; tests/faults has ten thousand."""

from pathlib import Path

import wild_words
from server_faults import tell


def test_wild_words_here(tmp_path: Path) -> None:
    tell(wild_words.run_here(tmp_path, 300))


def test_wild_words_served(tmp_path: Path) -> None:
    tell(wild_words.served(tmp_path, 100))
