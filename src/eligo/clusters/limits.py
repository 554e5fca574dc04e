"""How far fat tasks are looked for: limits of one purpose, measured with `benchmarks/clusters.py`.

A fat task of 100 tasks out of a dag of 100,000 takes about a tenth of a second with them; the search alone would take
minutes. They bound work, never what is claimed: what was not looked at is not said.
"""

# The search for one fat task
SEEDS = 24  # places from which it grows
EXCHANGES = 5_000  # pairs that are compared to improve one set
MOST_ENUMERATED = 12  # tasks left: up to here every set is looked at
MOST_OPENERS = 24  # tasks that are looked at to find what a waiting task waits for
NEAR = 4  # parents that a task may miss so that growing looks ahead to it
MOST_CHILDREN = 64  # that a score looks at

# The same in a dag of more than LARGEST_PLANNED tasks, and while a large one is dealt out
SEEDS_LARGE, EXCHANGES_LARGE = 4, 200
SEEDS_DEALING, EXCHANGES_DEALING = 3, 0

# Deciding what is left
CHECKS = ((2_000, 12), (20_000, 4))  # tasks left, and so many residuals of such dags are decided at most
FEW_CHECKS = 1
MOST_CERTIFIED = 20_000  # tasks: beyond, the repaired condition is not looked at for words alone
MANY_BLOCKS = 10  # without a name, of which one is looked at before all are solved

# Planning what is left
LARGEST_PLANNED = 20_000  # tasks
LARGEST_PLANNED_AGAIN = 5_000  # tasks
FEW_LEFT = 200  # tasks: each residual is decided, and planned anew, at once
OFTEN = 4  # of more, what is left is planned anew after each quarter
