"""The program that goes through a folder of files finds what is wrong with each."""

import subprocess
import sys
from pathlib import Path


def test_a_folder_is_gone_through_and_what_failed_is_told_by_kind(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"arcs": [["a", "b"]]}')
    (tmp_path / "odd.json").write_text('{"arcs": [["a b", "c"]]}')
    (tmp_path / "bad.json").write_text('{"arcs": [["a", "a"]]}')
    program = Path(__file__).with_name("corpus.py")
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, check=True)
    assert "     1  ok: json\n" in done.stdout
    assert "refused: FILE: a task depends on itself" in done.stdout
    assert "not converted to dagman" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("3 files: ")
