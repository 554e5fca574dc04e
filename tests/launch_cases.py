"""What the tests of containers share: a program in place of podman."""

import os
import sys
from pathlib import Path

import pytest

#: a program in place of podman: it runs the command of the container in a session of its own, as a service does
PODMAN = """\
#!{python}
import os, signal, subprocess, sys, time
state = os.path.dirname(os.path.abspath(sys.argv[0]))
verb, words = sys.argv[1], sys.argv[2:]
if verb == "run":
    options = []
    while words[0].startswith("--"):
        options.append(words.pop(0))
        if options[-1] == "--name":
            options.append(words.pop(0))
    image, *command = words
    value = {{option.partition("=")[0]: option.partition("=")[2] for option in options}}
    names = [option.partition("=")[2] for option in options if option.startswith("--env=")]
    environment = {{"PATH": os.environ["PATH"], **{{name: os.environ[name] for name in names}}, "IMAGE": image}}
    with open(os.path.join(state, "seen"), "a") as seen:
        print(*options, image, file=seen)
    child = subprocess.Popen(command, cwd=value["--workdir"], env=environment, start_new_session=True)
    with open(os.path.join(state, options[options.index("--name") + 1]), "w") as file:
        file.write(str(child.pid))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(child.wait() % 256)
if verb == "stop":
    name, late = os.path.join(state, words[-1]), time.monotonic() + float(words[1])
    if not os.path.exists(name):
        sys.exit(1)
    pid = int(open(name).read())
    os.killpg(pid, signal.SIGTERM)
    while time.monotonic() < late and os.path.exists(f"/proc/{{pid}}"):
        time.sleep(0.01)
    if os.path.exists(f"/proc/{{pid}}"):
        os.killpg(pid, signal.SIGKILL)
"""


def with_podman(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `podman` that runs commands without a container on the PATH; returns its folder."""
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "podman"
    program.write_text(PODMAN.format(python=sys.executable), "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return programs
