"""IC-scheduling theory, one function a theorem; docs/understand/theory.md tells the story.

| notion | where |
|---|---|
| profile E(t), area, schedule | `eligibility` |
| maximal E(t), IC-optimal, by enumeration: the oracle | `exact` |
| shortcuts and skeleton | `skeleton` |
| series cuts and segments | `series` |
| blocks and super-dag | `blocks` |
| one block: recognised or solved | `solutions`, `subsets`, `trees` |
| priority ▷, closed forms, chains | `priority`; arithmetic of profiles in `profiles` |
| ▷-linear composition (Theorem 2.1) | `composition` |
| Sweep, and sums as building blocks | `sweep`, `regimen` |
| duality | `eligibility.dual_schedule`, `profiles.dual_maxima` |

The search that puts it to work is in `eligo.deciding`.
"""
