# Attention by its functional, with and without masks.
#
# for DEPTH: 64
# size BATCH: 1 2
# size HEADS: 8
# size LENGTH: 1 7 100
# size OTHERS: 1 9 100
# input: BATCH HEADS LENGTH {DEPTH}
# input: BATCH HEADS OTHERS {DEPTH}
# input: LENGTH OTHERS
# input: BATCH 1 1 OTHERS
# input: BATCH 1 1 OTHERS bool
import torch.nn.functional as F


class Net(nn.Module):
    def forward(self, q, k, added, padding, kept):
        plain = F.scaled_dot_product_attention(q, k, k), F.scaled_dot_product_attention(q, k, k, is_causal=True)
        a = F.scaled_dot_product_attention(q, k, k, attn_mask=added)
        b = F.scaled_dot_product_attention(q, k, k, attn_mask=padding)
        c = F.scaled_dot_product_attention(q, k, k, attn_mask=kept)
        scores = q @ k.transpose(-2, -1) / {DEPTH} ** 0.5
        return plain, a, b, c, torch.softmax(scores.masked_fill(~kept, float('-inf')), -1) @ k


net = Net()
