"""With ``HUSHTABLE_BUILD_KERNELS=1``, compiles the kernels into a wheel for this platform.

Such a wheel starts at once; without, it is for every platform, and compiles on first use.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Of the C library, kernels ask for memory alone; Numba needs a newer one.
TAGS = {"x86_64": "manylinux_2_17_x86_64", "aarch64": "manylinux_2_17_aarch64"}


class BuildKernels(BuildHookInterface):
    """Hatchling calls it before it packs a wheel."""

    PLUGIN_NAME = "custom"

    @property
    def _wanted(self) -> bool:
        return os.environ.get("HUSHTABLE_BUILD_KERNELS") == "1"

    def dependencies(self) -> list[str]:
        return self.metadata.core.dependencies if self._wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not self._wanted:
            return
        if sys.platform != "linux" or platform.machine() not in TAGS:
            here = f"{sys.platform} on {platform.machine()}"
            raise RuntimeError(
                f"HUSHTABLE_BUILD_KERNELS=1: kernels are built on Linux, for {' and '.join(TAGS)}; "
                f"this is {here}. Build without it: the wheel then compiles on first use"
            )
        command = [sys.executable, str(Path(self.root) / "build_kernels.py")]
        env = os.environ | {"PYTHONPATH": str(Path(self.root) / "src")}
        subprocess.run(command, env=env, check=True)
        build_data["artifacts"].append("/src/hushtable/kernels/built/*.o")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[platform.machine()]}"
