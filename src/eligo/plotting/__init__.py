"""Pictures of plans: the profile, the dag, its super-dag, and all of them as one explanation.

They need matplotlib (`pip install 'eligo[plot]'`), which is imported when something is drawn. Figures are plain
matplotlib figures without global state; `save_figure` writes them so that equal pictures are equal bytes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eligo.plotting.clusters import draw_dealing, draw_fat_task
    from eligo.plotting.dags import draw_explanation, fifo_profile, save_figure

__all__ = ["draw_dealing", "draw_explanation", "draw_fat_task", "fifo_profile", "save_figure"]

#: the modules of these names; all others are in `dags`
_MODULES = {"draw_dealing": "clusters", "draw_fat_task": "clusters"}


def __getattr__(name: str) -> Any:
    """Import a name on first use, because most who import `eligo.plotting.layout` draw nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"eligo.plotting.{_MODULES.get(name, 'dags')}"), name)
