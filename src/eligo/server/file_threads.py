"""Threads for files and bodies alone: whatever else waits for a thread, transfers go on."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

THREADS = 16  # disks answer no sooner with more
P = ParamSpec("P")
T = TypeVar("T")
_POOL = ThreadPoolExecutor(THREADS, thread_name_prefix="eligo files")


async def in_file_thread(function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call a function that waits for a disk, in a thread for such functions."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, lambda: function(*given, **named))
