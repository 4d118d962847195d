"""Sequences of several lengths: padded to one length, and packed step by step."""

import torch
from torch import Tensor


class PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Optional[Tensor]
    unsorted_indices: Optional[Tensor]


def invert_permutation(permutation: Optional[Tensor]) -> Optional[Tensor]:
    if permutation is None:
        return None
    places = torch.arange(0, permutation.numel(), device=permutation.device)
    return torch.empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor, lengths: Union[Tensor, List[int]], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    if isinstance(lengths, Tensor):
        sizes = lengths.to(dtype=torch.int64)
    else:
        sizes = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    order: Optional[Tensor] = None
    if not enforce_sorted:
        sizes, found = torch.sort(sizes, descending=True)
        order = found.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = torch._VF._pack_padded_sequence(input, sizes, batch_first)
    return PackedSequence(data, batch_sizes, order, invert_permutation(order))


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: Optional[int] = None,
) -> Tuple[Tensor, Tensor]:
    length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    padded, lengths = torch._VF._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, length
    )
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Union[Tensor, List[Tensor]],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    if isinstance(sequences, Tensor):
        parts = sequences.unbind(0)
    else:
        parts = sequences
    return torch._C._nn.pad_sequence(parts, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> List[Tensor]:
    if not batch_first:
        # In place, as PyTorch has it.
        padded_sequences.transpose_(0, 1)
    places = torch.arange(padded_sequences.size(1), device=lengths.device)
    sequences: List[Tensor] = []
    for index in range(padded_sequences.size(0)):
        sequences.append(padded_sequences[index][places < lengths[index]])
    return sequences


def pack_sequence(sequences: List[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    lengths = torch.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> List[Tensor]:
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
