"""Graphs of other libraries: one module a library, named after it, and the only one that imports it.

Task names are the node objects of the graph. `eligo.border` chooses the module for an object.
"""
