"""The compiled loops over int32 arrays, one module per subject.

Each module is plain Python with a `.pxd` beside it that gives the C types (Cython's pure Python mode): compiled at
install where a C compiler is found, the same source interpreted elsewhere. `ELIGO_PURE=1` forces the interpreted form.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any


class _Sources:
    """An import finder that finds the sources of the kernels instead of the compiled modules."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(f"{__name__}."):
            return None
        return spec_from_file_location(name, Path(__file__).with_name(f"{name.rpartition('.')[2]}.py"))


if os.environ.get("ELIGO_PURE") and _Sources not in sys.meta_path:
    sys.meta_path.insert(0, _Sources)


def lender() -> Callable[[Any], Any]:
    """A function that makes arrays fast to read one by one: memoryview, or no change if the kernels are compiled."""
    return _as_it_is if compiled() else memoryview


def _as_it_is(array: Any) -> Any:
    return array


def compiled() -> bool:
    """Whether the kernels in use are the compiled ones."""
    spec = find_spec(f"{__name__}.graph")
    return spec is not None and not (spec.origin or "").endswith(".py")
