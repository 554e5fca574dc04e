"""Hand out tasks from Python: three cooks, one of them slow, bake the pie of pie.yaml and wash up; one task fails once.

python examples/live.py
"""

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import eligo

COOKS = {"ann": 0.02, "bob": 0.03, "old Tom": 0.3}  # seconds for a task


def main() -> None:
    """Serve the cooks until everything is done, and print who got what."""
    flow = eligo.read(Path(__file__).with_name("pie.yaml"))
    washing: dict[str, list[str]] = {f"wash {i}": [] for i in range(1, 9)}
    dag = flow.dag + eligo.Dag.from_parents(washing)
    game, failed = eligo.Execution(dag), set[str]()
    allocator = eligo.allocator("finish", dag, game)
    running: dict[Future[bool], tuple[str, str, float]] = {}
    with ThreadPoolExecutor(len(COOKS)) as pool:
        while not (game.finished or game.stuck):
            busy = {cook for cook, _, _ in running.values()}
            for grant in allocator.hand_out([eligo.Ask(cook) for cook in COOKS if cook not in busy]):
                cook, task = str(grant.ask.client), grant.tasks[0]
                note = " (a second copy: the first cook is slow)" if grant.why.startswith("another copy") else ""
                print(f"{cook:8} gets {task}{note}")
                running[pool.submit(work, cook, task, failed)] = cook, task, time.monotonic()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                cook, task, began = running.pop(future)
                if task in game.executed:
                    print(f"{cook:8} returns {task}, which is already done")
                elif future.result():
                    game.complete(task)
                    allocator.learn(cook, task, time.monotonic() - began)
                else:
                    print(f"{cook:8} fails at {task}: it will be handed out again")
                    game.fail(task)
                    if task in game.failed:
                        game.release(task)
    print(f"{len(game.executed)} tasks done; the journal has {len(game.journal)} moves")


def work(cook: str, task: str, failed: set[str]) -> bool:
    """Take some time; the filling is spilt at the first attempt."""
    time.sleep(COOKS[cook])
    spilt = task == "fill" and task not in failed
    failed.add(task)
    return not spilt


if __name__ == "__main__":
    main()
