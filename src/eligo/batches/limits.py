"""How far the best batch is looked for: limits of one purpose, measured with `benchmarks/batches.py`.

They bound work, never what is claimed: a batch that is not proved best comes with its bound.
"""

# One component by tables
LARGEST_TREE = 10_000_000  # sources times the largest batch: about a second and 160 MB
FEW_ITEMS = 14  # enumerated whatever the time
MOST_ITEMS = 20

# Large components
MOST_ARCS_FOR_CUTS = 100_000  # minimum cuts take about half a second there
MOST_ARCS_FOR_PROGRAM = 50_000
MOST_CLASSES_FOR_SEARCH = 1_000
LONGEST_SEARCH = 2.0  # seconds, before the integer program has its turn
SPARSE = 16  # one in so many sources, or fewer, are picked one by one
MOST_WANTED = 4  # the most sources that one exchange brings in
SHARE_ROUNDS = 12  # in which sinks give less to their richer sources
