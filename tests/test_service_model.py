"""The model of a server's promises notices what a server must not do."""

import pytest

from eligo.work.attempts import Attempt
from service_model import Given, Promises


def end(number: int, answer: str) -> Attempt:
    return Attempt("w", number, 0, number, "ann", "s", 0.0, 1.0, answer)


def model(failures: int) -> Promises:
    """A client heard of some failures of a task, which may fail twice; then its owner retried it."""
    promises = Promises(most_failures=2, most_losses=2, parents={"w": {"a": []}})
    for number in range(1, failures + 1):
        promises.grant(f"w.{number}.s", Given("w", "a", "ann"), promises.now())
        promises.hear(f"w.{number}.s", "result", "failed")
    promises.retry("w", ["a"])
    return promises


@pytest.mark.parametrize("answer", ["failed", "expired", "lost"])
def test_a_task_that_is_given_up_too_early_after_a_retry_is_noticed(answer: str) -> None:
    before = [end(number, "failed") for number in (1, 2, 3)]
    early = [*before, end(4, answer)]
    assert model(3).judge("w", ["a"], early, "failed") == ["a was lost"]
    late = [*before, *(end(number, answer) for number in (4, 5, 6))]
    assert model(3).judge("w", ["a"], late, "failed") == []
