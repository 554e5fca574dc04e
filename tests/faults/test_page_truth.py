"""The curve on the page during the whole of a large run with faults."""

from pathlib import Path

from fault_scenarios import Size
from page_truth import truth_shown
from server_faults import tell


def test_the_curve_shown_is_the_truth_within_a_second(tmp_path: Path) -> None:
    tell(truth_shown(tmp_path, Size(tasks=10_000, clients=50, wide=500, nap=0.15, kills=10), (2.0, 6.0)))
