"""The one step that pyproject.toml cannot say: compile the C kernels into the package.

Without a compiler the install goes on, and plain torch takes their place (`conjoint doctor` tells).
"""

import importlib.util
from pathlib import Path
from types import ModuleType

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

PACKAGE = Path(__file__).resolve().parent / "src" / "conjoint"


def kernel_builder() -> ModuleType:
    """conjoint.kernels.build, by its path: the package itself cannot be imported yet."""
    spec = importlib.util.spec_from_file_location("conjoint_kernel_build", PACKAGE / "kernels" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class BuildWithKernels(build_py):
    def run(self) -> None:
        super().run()
        package = PACKAGE if self.editable_mode else Path(self.build_lib) / "conjoint"
        trouble = kernel_builder().build(package / "kernels")
        if trouble is not None:
            self.warn(f"the C kernels were not built, plain torch will be used instead: {trouble}")


class PlatformWheel(bdist_wheel):
    """The libraries are called through ctypes: any Python 3, one platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class PlatformDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel}, distclass=PlatformDistribution)
