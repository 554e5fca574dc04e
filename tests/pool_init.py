"""The first process of a pool's namespaces: starts its programs, and ends when its standard input does.

    unshare --mount --pid --net --uts --ipc --fork --kill-child --mount-proc=ROOT/proc python pool_init.py SETTINGS

The kernel ends every process of the namespace with this one, so nothing of the pool can be left behind. This file
runs in the new namespaces, where no network but loopback exists: it imports nothing of eligo.
"""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any

HOST = "pool"
SECONDS_TO_STOP = 20
SECONDS_AWAY = 3.0
SIOCSIFFLAGS, IFF_UP_AND_RUNNING, SIOCSIFADDR = 0x8914, 0x41, 0x8916


def bring_loopback_up(address: str | None) -> None:
    """What `ip link set lo up` and `ip address add` do, without the program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP_AND_RUNNING))
        if address is not None:
            second = struct.pack("16sHH4s16x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(any_socket, SIOCSIFADDR, second)


def reap() -> set[int]:
    """Collect every process that has ended, orphans of the whole namespace too."""
    found = set()
    try:
        while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            found.add(ended)
    except ChildProcessError:
        pass
    return found


def input_has_ended(seconds: float) -> bool:
    """Whether whoever started the pool has closed the pipe or died; waits that long for it."""
    ready, _, _ = select.select([sys.stdin.fileno()], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1024)


def spawned(words: list[str]) -> int:
    return os.posix_spawn(words[0], words, os.environ)


def stopped(running: dict[int, list[str]], number: int) -> None:
    """End what runs, politely: whatever does not listen ends with this process."""
    for pid in running:
        os.kill(pid, number)
    stop_at = time.monotonic() + SECONDS_TO_STOP
    while running and time.monotonic() < stop_at:
        for pid in reap() & running.keys():
            del running[pid]
        time.sleep(0.1)


def main(settings: dict[str, Any]) -> None:
    """Run the programs until one of them ends, or until they should; with `again` those that end come back after a while."""
    socket.sethostname(HOST)
    bring_loopback_up(settings.get("address"))
    for folder in settings.get("shared", []):
        os.makedirs(settings["root"] + folder, exist_ok=True)
        subprocess.run(["mount", "--bind", folder, settings["root"] + folder], check=True)
    os.chroot(settings["root"])
    os.chdir("/")
    running = {spawned(words): words for words in settings["programs"]}
    later: list[tuple[float, list[str]]] = []
    while not input_has_ended(0.2):
        gone = [running.pop(pid) for pid in reap() & running.keys()]
        if gone and not settings.get("again"):
            break
        later += [(time.monotonic() + SECONDS_AWAY, words) for words in gone]
        for due, words in [each for each in later if each[0] <= time.monotonic()]:
            later.remove((due, words))
            running[spawned(words)] = words
    stopped(running, settings.get("stop", signal.SIGTERM))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
