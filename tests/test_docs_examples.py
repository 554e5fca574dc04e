"""README fits its limit and its shell blocks run; the demo shows every verb."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import write_reference as reference
from running_cases import peak

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
MOST_LINES = 150
PATIENCE = 120
#: the lines of shell blocks that install or test something
INSTALLS = ("pip ", "make ")
ADDRESS = "127.0.0.1:8750"


def blocks(kind: str) -> list[str]:
    """The blocks of README in a language."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def environment(folder: Path) -> dict[str, str]:
    """The environment of a user whose command `eligo` is the one that is tested."""
    command = folder / "bin" / "eligo"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m eligo "$@"\n')
    command.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ELIGO_")}
    state = {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    return {**inherited, **state, "PATH": f"{command.parent}:{os.environ['PATH']}"}


def test_the_shell_blocks_of_readme_run(tmp_path: Path) -> None:
    """Lines that serve or work run in the background until the server reports that all is done."""
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    (tmp_path / "pie.yaml").write_text(blocks("yaml")[0])
    user, port, begun = environment(tmp_path), free_port(), list[subprocess.Popen[str]]()
    served = (
        "\n".join(blocks("sh"))
        .replace(ADDRESS, f"127.0.0.1:{port}")
        .replace("eligo serve", f"eligo serve --port {port}")
    )
    lines = [line for line in served.splitlines() if line and not line.startswith(INSTALLS)]
    try:
        for line in lines:
            if line.startswith(("eligo serve", "eligo work")):
                begun.append(subprocess.Popen(["sh", "-c", f"exec {line}"], cwd=tmp_path, env=user, text=True))
                answers(port)
            else:
                subprocess.run(["sh", "-ec", line], cwd=tmp_path, env=user, check=True, timeout=PATIENCE)
        done_within(PATIENCE, ["eligo", "status", f"http://127.0.0.1:{port}"], tmp_path, user)
    finally:
        for process in reversed(begun):
            process.terminate()
            process.wait(PATIENCE)
    assert len(lines) >= 4
    assert len(begun) == 2


def answers(port: int) -> None:
    """Wait until a server accepts connections at a port."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as one:
            if not one.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.05)
    raise AssertionError(f"no server answers at port {port}")


def done_within(seconds: float, command: list[str], folder: Path, user: dict[str, str]) -> None:
    """Wait until a command prints that all four tasks are done."""
    end, printed = time.monotonic() + seconds, ""
    while "4 done" not in printed:
        assert time.monotonic() < end, printed
        time.sleep(0.2)
        printed = subprocess.run(
            command, cwd=folder, env=user, check=True, capture_output=True, text=True, timeout=PATIENCE
        ).stdout


def test_two_mosaics_fit_on_a_small_disk_with_a_limit(tmp_path: Path) -> None:
    """Where nothing can be mounted, the bytes between tasks show that first come, first served would fill the disk."""
    command = [sys.executable, str(ROOT / "examples" / "small_disk.py"), str(tmp_path / "small")]
    shown = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert ("No space left on device" in shown.stdout) == ("note: no tmpfs" not in shown.stdout)
    assert peak(tmp_path / "small" / "limited.run", [".png"]) <= 344 * 1024


def demo() -> ModuleType:
    """The module of the demo."""
    spec = spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_shows_every_verb() -> None:
    assert demo().verbs() == set(reference.verbs())


def test_every_step_of_the_demo_says_what_is_gained() -> None:
    steps = demo().STEPS
    assert all(comment.endswith((".", "?", "...")) and len(comment) <= 160 for comment, _ in steps)
    assert all(command.startswith(("eligo ", "python examples/")) for _, command in steps)
