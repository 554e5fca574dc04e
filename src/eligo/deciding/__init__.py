"""The search for a best order: every dag gets an order, a bound and a verdict, each with what proves it.

| notion | where |
|---|---|
| all of it wired together, segment by segment | `solver`, which gives `outcomes` |
| how long to look | `effort`, `work`, `limits` |
| bounds for every dag | `bounds`, `probing` |
| modules between strict corners, and their pieces | `modules` |
| exact M(t) by elimination, with symmetry | `elimination`, `symmetry` |
| marked tasks, which tell what area can still come | `marking` |
| orders by canonical moves, by heuristics, ties | `moves`, `positions`, `orders`, `preferences` |
| series-parallel dags: largest area, shares without cuts | `seriesparallel` |
| why no schedule is best at every step | `conflicts`, `solver` |
"""
