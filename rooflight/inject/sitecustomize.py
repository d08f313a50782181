"""Python imports this at its start because the launcher put its folder first on PYTHONPATH.

It runs the ``sitecustomize`` that it stands before, then waits for torch: once torch's optimizers are there,
the end of each step of the first optimizer is the end of a step of the window.  A program that never loads
torch is not touched at all.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).resolve().parent
_OPTIMIZERS = "torch.optim.optimizer"

Then = Callable[[Any], None]


class _AfterImport(MetaPathFinder):
    """Finds one module as everybody else would, and calls ``then`` with it when it has been loaded."""

    def __init__(self, name: str, then: Then) -> None:
        self.name, self.then = name, then

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.then)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader, then: Then) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Whoever looks at the module finds the loader that it would have without us.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._then(module)
        except Exception as e:
            sys.stderr.write(f"rooflight: steps are not recorded: {type(e).__name__}: {e}\n")


def _arm() -> None:
    if os.environ.get("ROOFLIGHT_WINDOW") and _OPTIMIZERS not in sys.modules:
        sys.meta_path.insert(0, _AfterImport(_OPTIMIZERS, _count_steps))


def _count_steps(optimizers: Any) -> None:
    import atexit

    window = _window()
    first: list[int] = []

    def after_step(optimizer: object, *_: object) -> None:
        # A hook cannot be taken away from within itself: after the window it costs this comparison.
        if window.over:
            return
        # With several optimizers (GANs) the first one's steps are the program's.
        if not first:
            first.append(id(optimizer))
        if first[0] == id(optimizer):
            window.step()

    optimizers.register_optimizer_step_post_hook(after_step)
    atexit.register(window.close)


def _window() -> Any:
    import json

    # Loaded from its file: our folder is not left on the program's path.
    spec = importlib.util.spec_from_file_location("rooflight_window", _HERE / "rooflight_window.py")
    if spec is None or spec.loader is None:
        raise ImportError("rooflight_window.py is missing")
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    settings = json.loads(os.environ["ROOFLIGHT_WINDOW"])
    return module.Window(module.Plan(**settings["plan"]), settings["folder"])


def _chain(paths: list[str]) -> None:
    """Run the ``sitecustomize`` that would have run without us, under its own name."""
    spec = PathFinder.find_spec("sitecustomize", paths)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _HERE]
_arm()
_chain(sys.path)
