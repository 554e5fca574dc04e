"""Plug-ins: other engines run their tasks in eligo's order, and do everything else themselves."""
