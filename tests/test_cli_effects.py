"""Options that have no effect are refused in one line, before anything runs."""

from pathlib import Path

import pytest

from eligo.cli import run

URL = "http://127.0.0.1:9"
FOLDER = "no-such.run"
USELESS = [
    ("plan FILE --priority-base 5", "--priority-base"),
    ("plan FILE --to dot --priority-base 9", "--priority-base, --to"),
    ("plan FILE --force", "--force"),
    ("plan FILE --names --to dot", "--to"),
    ("plan FILE --names --in-place", "--in-place"),
    ("plan FILE --in-place --to names", "--to"),
    ("cluster FILE --size 2 --weight 0.3", "--weight"),
    ("cluster FILE --size 2 --tolerance 0.3", "--tolerance"),
    ("cluster FILE --size 2 --force", "--force"),
    ("cluster FILE --tasks FILE --goal mixed", "--goal"),
    ("compare EXPERIMENT --runs 3 --seed 1", "--runs, --seed"),
    (f"run --resume {FOLDER} --reverse", "--reverse"),
    (f"run FILE --run {FOLDER} --resume {FOLDER}", "--resume"),
    ("run FILE --batch --policy fifo", "--policy"),
    ("run FILE --rehearse 1 --skip-done --dir .", "--skip-done, --dir"),
    (f"run FILE --on {URL} --workers 2 --page", "--workers, --page"),
    (f"run FILE --on {URL} --resume {FOLDER}", "--resume"),
    ("run FILE --on htcondor-dagman --fat 2", "--fat"),
    ("run FILE --on htcondor-dagman --start-from a --pause", "--pause, --start-from"),
    (f"run FILE --on {URL} --hook on_end=true", "--hook"),
    ("run FILE --dry-run --pause --hook on_end=true", "--pause, --hook"),
    ("run FILE --rehearse 1 --stream-lines", "--stream-lines"),
    ("run FILE --stream --stream-lines", "--stream-lines"),
    (f"pause {FOLDER} --token-file x", "--token-file"),
    ("run FILE --on htcondor-dagman --cache c", "--cache"),
    (f"run FILE --on {URL} --cache c", "--cache"),
    ("run FILE --rehearse 1 --cache c", "--cache"),
    ("run FILE --dry-run --cache c", "--cache"),
    (f"status {FOLDER} --token-file x", "--token-file"),
    (f"why {FOLDER} a --ca x", "--ca"),
    (f"top {FOLDER} --once --ca x", "--ca"),
    ("run FILE --rehearse 1 --ignore PRE", "--ignore"),
    ("serve --policy fifo", "--policy"),
    ("serve --ignore PRE", "--ignore"),
    (f"work {URL} --sandbox-network", "--sandbox-network"),
    (f"work {URL} --seconds 5 --size 2", "--size"),
    (f"token {URL} ann --revoke --days 3", "--days"),
    ("run FILE --stream --json", "--stream"),
    *((f"run FILE {option} {where}", option.split()[0]) for option in ("--stream", "--joblog x")
      for where in ("-n", "--rehearse 1", f"--on {URL}")),
    *((f"run FILE {option} {where}", option.split()[0]) for option in ("--again a", "--fresh", "--dry-run")
      for where in ("--on htcondor-dagman", "--rehearse 1", f"--on {URL}")),
]  # fmt: skip


@pytest.mark.parametrize(("words", "options"), USELESS, ids=[words for words, _ in USELESS])
def test_an_option_without_effect_is_refused(
    words: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text('{"tasks": [{"name": "a", "run": "touch ran", "seconds": 1}]}')
    Path("EXPERIMENT.yaml").write_text("dags: [{family: w, sizes: [[3, 2]]}]\nschedulers: [fifo]\ngames: {pebble: {}}")
    assert run(words.replace("EXPERIMENT", "EXPERIMENT.yaml").split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"eligo: {options} ha")
    assert "no effect" in err
    assert not Path("ran").exists()


def test_defaults_are_not_taken_for_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flow.json").write_text('{"tasks": [{"name": "a", "run": "touch ran"}]}')
    assert run(["run", "flow.json", "--quiet"]) == 0
    assert run(["status", "flow.json"]) == 0
    assert run(["plan", "flow.json", "--force", "-o", "out.json"]) == 0
