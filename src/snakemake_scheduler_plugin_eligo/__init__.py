"""The scheduler plug-in that Snakemake finds by the name of this package: `snakemake --scheduler eligo`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from snakemake_interface_common.exceptions import ApiError
from snakemake_interface_scheduler_plugins.base import SchedulerBase
from snakemake_interface_scheduler_plugins.settings import SchedulerSettingsBase

from eligo.errors import EligoError
from eligo.plugins.snakemake import DEFAULT, ReadyJobs, check_policy, space_in


@dataclass
class SchedulerSettings(SchedulerSettingsBase):
    """What can be set: `--scheduler-eligo-policy`, `--scheduler-eligo-history`, `--scheduler-eligo-space`."""

    policy: Optional[str] = field(  # noqa: UP045, Snakemake asks for this form
        default=DEFAULT,
        metadata={
            "help": "The order in which ready jobs begin: finish (the end soonest), ready, fifo, critical-path ..."
        },
    )
    history: Optional[Path] = field(  # noqa: UP045
        default=None,
        metadata={"help": "How long jobs took before: a file or folder that eligo reads, such as one of benchmarks."},
    )

    space: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "How many bytes of temp() files may exist at once, such as 200G; other jobs wait."},
    )

    def __post_init__(self) -> None:
        try:
            check_policy(self.policy or DEFAULT)
            self.space is None or space_in(self.space)
        except EligoError as error:
            raise ApiError(f"scheduler eligo: {error}") from None


class Scheduler(SchedulerBase):
    """Ready jobs by the user's own priorities, then by eligo's order; temporary files count only for a limit."""

    def __post_init__(self) -> None:
        settings = self.settings or SchedulerSettings()
        space = None if settings.space is None else space_in(settings.space)
        self._ready = ReadyJobs(self.dag, settings.policy or DEFAULT, settings.history, space)

    def select_jobs(
        self,
        selectable_jobs: Sequence[Any],
        remaining_jobs: Sequence[Any],
        available_resources: Mapping[str, Any],
        input_sizes: Mapping[Any, int],
    ) -> Sequence[Any]:
        """The jobs to begin now, the best first."""
        try:
            return self._ready.select(selectable_jobs, remaining_jobs, available_resources)
        except EligoError as error:
            raise ApiError(f"scheduler eligo: {error}") from None
