"""How far the search looks: limits of one purpose, measured with `benchmarks/planner.py`.

They were chosen on the real workflows and the generated dags of that benchmark so that normal effort takes a few seconds.
They bound work, never what is claimed: what is not decided within them is called "bounded".
"""

# Bounds
LARGEST_CONVOLUTION = 200_000_000  # products of lengths: about a second
LARGEST_DUAL = 20_000  # tasks: beyond, the dual's modules are not worth their cuts
MOST_SUMMANDS = 200  # components that are solved one by one and swept together
MOST_PROBED = 400  # tasks: beyond, the probes would make up most of a plan

# Exact maxima by elimination
MOST_STATES = 2_000_000  # combinations in the largest bag
LARGEST_BAG = 400  # tasks
FEW_STATES = 20_000  # up to here symmetry is not worth looking for
MOST_ENTRIES = 40_000_000  # of all tables of one join
LEAST_ALIKE = 3  # members of a symmetry: a pair is not worth the search
MOST_ROUNDS = 60  # of refining colours until a canonical order

# Orders
ITEMS_IN_A_HURRY = 10  # what is enumerated when time is up
MOST_FOR_AREA = 150  # tasks: the search for a largest area closes no larger module in reasonable time
MOST_FOR_MOVES = 400  # tasks: move by move play takes quadratic time
REACHES = (100, 1_000)  # tasks that one is moved past at once: at first, and in the end
MOST_STARTS = 4  # orders that are improved: the best of the heuristics is not always what the best comes of
IMPROVED_AT_ONCE = 100_000_000  # units of work between two looks at the clock
MOST_PREFERRED = 20_000  # tasks among which ties are broken by preference

# Why no order is best
CONFLICT_WORK = 10_000_000_000
BEST_SET_WORK = 500_000_000  # what is found at all is found soon
CONFLICT_WIDTHS = (30, 3_000, 30_000)
CONFLICT_BEAMS = (30, 300, 3_000)
