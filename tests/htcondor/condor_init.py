"""The first process of the pool's namespaces: starts condor_master in the root, and ends when its standard input does.

    unshare --mount --pid --net --uts --ipc --fork --kill-child --mount-proc=ROOT/proc python condor_init.py ROOT

The kernel ends every process of the namespace with this one, so nothing of the pool can be left behind. This file
runs in the new namespaces, where no network but loopback exists: it imports nothing of eligo.
"""

import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time

HOST = "pool"
SECONDS_TO_STOP = 20
SIOCSIFFLAGS, IFF_UP_AND_RUNNING = 0x8914, 0x41


def bring_loopback_up() -> None:
    """What `ip link set lo up` does, without the program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP_AND_RUNNING))


def reap(pid: int) -> bool:
    """Collect every process that has ended, orphans of the whole namespace too; whether *pid* was among them."""
    found = False
    try:
        while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            found |= ended == pid
    except ChildProcessError:
        pass
    return found


def input_has_ended(seconds: float) -> bool:
    """Whether whoever started the pool has closed the pipe or died; waits that long for it."""
    ready, _, _ = select.select([sys.stdin.fileno()], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1024)


def main(root: str) -> None:
    """Run condor_master until it ends, or until it should."""
    socket.sethostname(HOST)
    bring_loopback_up()
    os.chroot(root)
    os.chdir("/")
    master = os.posix_spawn("/usr/sbin/condor_master", ["condor_master", "-f"], os.environ)
    while not reap(master):
        if input_has_ended(0.2):
            os.kill(master, signal.SIGQUIT)
            stop_at = time.monotonic() + SECONDS_TO_STOP
            while not reap(master) and time.monotonic() < stop_at:
                time.sleep(0.1)
            return


if __name__ == "__main__":
    main(sys.argv[1])
