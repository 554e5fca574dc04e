"""IC-scheduling theory, one function a theorem.

| notion | function |
|---|---|
| profile E(t), cumulative profile, area | `eligibility.profile`, `cumulative_profile`, `area`, `normalised_area` |
| schedule | `eligibility.is_schedule`, `check_schedule` |
| maximal E(t), IC-optimal, maximal area, best batch, by enumeration | `exact` |
"""
