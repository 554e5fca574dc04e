"""Pictures of plans: the profile, the dag, its super-dag, and all of them as one explanation.

They need matplotlib (`pip install 'eligo[plot]'`), which is imported when something is drawn. Figures are plain
matplotlib figures without global state; `save_figure` writes them so that equal pictures are equal bytes.
"""

from eligo.plotting.clusters import draw_dealing, draw_fat_task
from eligo.plotting.dags import draw_explanation, fifo_profile, save_figure

__all__ = ["draw_dealing", "draw_explanation", "draw_fat_task", "fifo_profile", "save_figure"]
