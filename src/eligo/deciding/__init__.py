"""The search for a best order: every dag gets an order, a bound and a verdict, each with its proof.

| notion | where |
|---|---|
| the whole search, segment by segment | `solver` |
| how far to search; the work done and its outcome | `effort`; `work` |
| bounds for every dag, lowered by probes | `bounds` |
| modules between strict corners, their pieces and marked tasks | `modules` |
| exact M(t) by elimination, with symmetry | `elimination`, `symmetry` |
| orders by canonical moves, by heuristics, ties | `moves`, `positions`, `orders` |
| series-parallel dags: largest area, shares without cuts | `seriesparallel` |
| why no schedule is best at every step | `conflicts`, `solver` |
"""
