"""IC-scheduling theory, one function a theorem; docs/understand/theory.md tells the story.

| notion | where |
|---|---|
| profile E(t), area, schedule | `eligibility` |
| maximal E(t), IC-optimal, by enumeration: the oracle | `exact` |
| shortcuts and skeleton; series cuts and segments | `skeleton` |
| blocks and super-dag | `blocks` |
| one block: recognised or solved | `solutions`, `subsets`, `trees` |
| priority ▷, closed forms, chains | `priority`; arithmetic of profiles in `profiles` |
| ▷-linear composition (Theorem 2.1); sums as building blocks | `composition` |
| Sweep | `sweep` |
| duality | `eligibility.dual_schedule`, `profiles.dual_maxima` |

`eligo.deciding` searches for orders with it.
"""
