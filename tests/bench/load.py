import importlib.machinery
import importlib.util
import os


def load_python(path):
    """The module in a file of any suffix."""
    name = os.path.basename(path).split(".")[0]
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
