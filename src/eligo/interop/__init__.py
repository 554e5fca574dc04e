"""Graphs of other libraries: one module a library, named after it, and the only one that imports it.

Tasks keep the objects that they are in the graph. `eligo.border` chooses the module that an object belongs to.
"""
