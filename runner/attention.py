"""Attention of one request's new tokens over its keys; several query heads share a KV head."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def causal_mask(new: int, start: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """Return what to add to the scores of `new` tokens behind `start` cached ones, if anything."""
    if new == 1 or start == 0:
        return None
    blocked = torch.full((new, start + new), float("-inf"), dtype=dtype, device=device)
    return blocked.triu_(diagonal=start + 1)


def sliding_mask(
    new: int, before: int, window: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return what to add to the scores of `new` tokens over `before` earlier keys and their own.

    A token attends to itself and the `window` - 1 keys before it.
    """
    reach = torch.ones((new, before + new), dtype=torch.bool, device=device)
    reach = reach.tril_(diagonal=before).triu_(diagonal=before - window + 1)
    blocked = torch.full(reach.shape, float("-inf"), dtype=dtype, device=device)
    return blocked.masked_fill_(reach, 0.0)


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Attend with [new, heads, d] to [1, kv heads, context, d]; return [new, heads * d].

    Without a mask, several new tokens are the whole context: they attend causally.
    """
    new, heads, dim = query.shape
    query = query.to(keys.dtype)
    if new == 1:
        return _attend_one(query, keys, values).view(1, heads * dim)
    out = F.scaled_dot_product_attention(
        query.transpose(0, 1).unsqueeze(0),
        keys,
        values,
        attn_mask=mask,
        is_causal=mask is None,
        enable_gqa=heads != keys.shape[1],
    )
    return out[0].transpose(0, 1).reshape(new, heads * dim)


def _attend_one(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One token's heads that share a KV head become rows of one query: K and V are read once."""
    kv_heads, dim = keys.shape[1], query.shape[2]
    folded = query.view(1, kv_heads, -1, dim)
    return F.scaled_dot_product_attention(folded, keys, values).contiguous()
