"""Kernel names without what tells nothing: the return type and the parameters."""

from __future__ import annotations


def short_kernel_name(name: str) -> str:
    """Drop `void` in front and the parameter list behind of a demangled name; keep templates.

    "void flash::fwd<Traits, (int)4>(Params &)" becomes "flash::fwd<Traits, (int)4>". A name that
    is not of this form stays as it is.
    """
    name = name.strip()
    bare = name.removeprefix("void ").strip()
    bare = bare[: -len(" const")] if bare.endswith(") const") else bare
    if not bare.endswith(")"):
        return bare
    depth = 0
    for place in range(len(bare) - 1, -1, -1):
        depth += (bare[place] == ")") - (bare[place] == "(")
        if depth == 0:
            return bare[:place] if _is_whole(bare[:place]) else bare
    return bare


def _is_whole(text: str) -> bool:
    """Say whether something stands there and its parentheses are all closed."""
    return bool(text) and all(
        text.count(a) == text.count(b) for a, b in (("(", ")"), ("[", "]"), ("{", "}"))
    )
