"""Pictures of plans: the profile, the dag, its super-dag, and all of them as one explanation.

They need matplotlib (`pip install 'eligo[plot]'`), which is imported when something is drawn. Figures are plain
matplotlib figures without global state; `save_figure` writes them so that equal pictures are equal bytes.
"""

from eligo.plotting.clusters import draw_dealing, draw_fat_task
from eligo.plotting.dags import draw_dag, draw_explanation, draw_superdag, fifo_profile, save_explanation, save_figure
from eligo.plotting.profiles import draw_profile

__all__ = [
    "draw_dag", "draw_dealing", "draw_explanation", "draw_fat_task", "draw_profile", "draw_superdag", "fifo_profile",
    "save_explanation", "save_figure",
]  # fmt: skip
