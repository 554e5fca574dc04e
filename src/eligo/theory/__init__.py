"""IC-scheduling theory, one function a theorem; docs/theory.md tells the story.

| notion | where |
|---|---|
| profile E(t), area, schedule | `eligibility` |
| maximal E(t), IC-optimal, largest area, best batch, by enumeration: the oracle | `exact` |
| shortcuts and skeleton | `skeleton` |
| series cuts and segments | `series` |
| blocks and super-dag | `blocks` |
| one block: recognised or solved | `solutions`, `subsets`, `trees` |
| priority ▷, closed forms, chains | `priority`; arithmetic of profiles in `profiles` |
| ▷-linear composition (Theorem 2.1) | `composition` |
| Sweep, and sums as building blocks | `sweep`, `regimen` |
| duality | `duality` |
| bounds for every dag | `bounds`, `probing` |
| series-parallel dags: largest area, shares without cuts | `seriesparallel` |
| exact M(t) by elimination, with symmetry | `elimination`, `symmetry` |
| modules and canonical moves | `modules`, `moves` |
| why no schedule is best at every step | `conflicts` |
| heuristics, ties | `orders`, `preferences`, `canonical` |
| all of it wired together | `deciding`, which gives `outcomes` within a `clock` |
"""
