"""Plug-ins: eligo's order inside other engines, which go on doing everything else themselves."""
