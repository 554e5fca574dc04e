"""Who orders best: orders of many tools on the same workflows, each score as the gap to a bound that no order beats.

    python -m contest FILES... [--workers N] [--order FILE] [--policy NAME] [--adversary DAGS] [-o PAGE]

| module | what it has |
|---|---|
| `entrants` | the orders and policies that take part |
| `scores` | the gaps of one entrant on one workflow |
| `adversary` | a search for the dag on which `finish` loses most |
"""
