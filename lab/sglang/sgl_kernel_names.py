"""Installed as the package `sgl_kernel`: the names of the engine's CUDA kernels, without the kernels.

SGLang imports many of them wherever it runs; on a processor with the plain attention of torch it calls none. Whatever is asked for
by name is there, in every submodule; calling it is an error.
"""
import importlib.abc
import importlib.machinery
import sys
import types


class Absent:
    """Stands for one kernel."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *_args, **_kwargs):
        raise NotImplementedError(f"{self._name} needs a GPU")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")


def absent_in(module):
    def find(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{module}.{name}")
    return find


class Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every submodule."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith(__name__ + ".") else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = absent_in(spec.name)
        return module

    def exec_module(self, module):
        pass


__getattr__ = absent_in(__name__)
sys.meta_path.append(Submodules())
