"""Compile eligo.kernels where a C compiler is found; install without it, and say so, where none is."""

import os
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.extension import Extension

DIRECTIVES = {
    "language_level": "3",
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "annotation_typing": False,  # the C types stand in the .pxd beside each kernel
}


class OptionalBuild(build_ext):
    """Build the kernels, several at a time, or leave them interpreted."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # any compiler failure must leave a working install
            print(f"eligo: the kernels were not compiled ({error}); they run interpreted: same results, slower.")


def kernels() -> list[Extension]:
    if os.environ.get("ELIGO_PURE"):
        return []
    from Cython.Build import cythonize  # needed only when compiling

    sources = sorted(Path("src/eligo/kernels").glob("*.py"))
    extensions = [
        Extension(f"eligo.kernels.{source.stem}", [str(source)], extra_compile_args=["-O3", "-g0", "-ffp-contract=off"])
        for source in sources
        if source.stem != "__init__"
    ]
    return list(cythonize(extensions, compiler_directives=DIRECTIVES))


setup(ext_modules=kernels(), cmdclass={"build_ext": OptionalBuild})
