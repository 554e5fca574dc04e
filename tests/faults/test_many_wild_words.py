"""Ten thousand wild words, or ELIGO_FAULT_WORDS, as names and as arguments; `make test` tries some hundred."""

import os
from pathlib import Path

import wild_words
from server_faults import tell

WORDS = int(os.environ.get("ELIGO_FAULT_WORDS", "10000"))


def test_wild_words_here(tmp_path: Path) -> None:
    tell(wild_words.run_here(tmp_path, WORDS))


def test_wild_words_served(tmp_path: Path) -> None:
    tell(wild_words.served(tmp_path, WORDS))
