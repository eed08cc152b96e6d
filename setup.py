# pyright: standard
"""The checkout is the package `tensorplan`: its folders with an `__init__.py`."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class BuildPackage(build_py):
    def find_package_modules(self, package: str, package_dir: str):
        """The modules in a package's folder, except dev.py and setup.py."""
        found = super().find_package_modules(package, package_dir)
        return [module for module in found if module[1] not in ("dev", "setup")]


setup(
    packages=["tensorplan", *(f"tensorplan.{name}" for name in find_packages())],
    cmdclass={"build_py": BuildPackage},
)
