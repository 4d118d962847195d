"""Recurrent layers and cells."""

import math
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence


class _RNN(Module):
    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    _flat_weights: List[Tensor]

    def _setup(
        self,
        mode,
        gates,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        # A bool is an int to Python, but no probability.
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        directions = 2 if bidirectional else 1
        output_size = proj_size if proj_size > 0 else hidden_size
        bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0
        weights = []
        for layer in range(num_layers):
            for direction in range(directions):
                suffix = "_l" + str(layer) + ("_reverse" if direction == 1 else "")
                shapes = [
                    ("weight_ih", (gates * hidden_size, input_size if layer == 0 else output_size * directions)),
                    ("weight_hh", (gates * hidden_size, output_size)),
                ]
                if bias:
                    shapes += [("bias_ih", (gates * hidden_size,)), ("bias_hh", (gates * hidden_size,))]
                if proj_size > 0:
                    shapes.append(("weight_hr", (proj_size, hidden_size)))
                for name, shape in shapes:
                    weight = torch.nn.Parameter(torch.empty(shape, dtype=dtype).uniform_(-bound, bound))
                    self.register_parameter(name + suffix, weight)
                    weights.append(weight)
        self._flat_weights = weights

    def _check_input(self, input: Tensor) -> None:
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _check_state(self, input: Tensor, state: Tensor, size: int, what: str) -> None:
        layers = self.num_layers * 2 if self.bidirectional else self.num_layers
        batch = input.size(0) if self.batch_first else input.size(1)
        if state.dim() != 3 or state.size(0) != layers or state.size(1) != batch or state.size(2) != size:
            expected = (layers, batch, size)
            raise RuntimeError(f"Expected {what} size {expected}, got {state.size()}")

    def _check_packed_state(self, state: Tensor, batch: int, size: int, what: str) -> None:
        layers = self.num_layers * 2 if self.bidirectional else self.num_layers
        if state.dim() != 3 or state.size(0) != layers or state.size(1) != batch or state.size(2) != size:
            expected = (layers, batch, size)
            raise RuntimeError(f"Expected {what} size {expected}, got {state.size()}")

    def _check_data(self, data: Tensor) -> None:
        if data.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {data.dim()}")
        self._check_input(data)

    def _ordered(self, state: Tensor, order: Optional[Tensor]) -> Tensor:
        """The state of each sequence where the sequences are in another order."""
        if order is None:
            return state
        return state.index_select(1, order)

    def _packed_zeros(self, data: Tensor, batch: int, size: int) -> Tensor:
        layers = self.num_layers * 2 if self.bidirectional else self.num_layers
        return torch.zeros(layers, batch, size, dtype=data.dtype, device=data.device)

    def _zeros(self, input: Tensor, size: int) -> Tensor:
        """A state to begin with."""
        layers = self.num_layers * 2 if self.bidirectional else self.num_layers
        batch = input.size(0) if self.batch_first else input.size(1)
        return torch.zeros(layers, batch, size, dtype=input.dtype, device=input.device)


class LSTM(_RNN):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup("LSTM", 4, *args, **kwargs)

    @torch.jit._overload_method
    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        pass

    @torch.jit._overload_method
    def forward(
        self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
        pass

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        else:
            return self._padded(input, hx)

    def _packed(
        self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]]
    ) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
        data, batch_sizes, order, back = input
        batch = int(batch_sizes[0])
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        if hx is None:
            h = self._packed_zeros(data, batch, size)
            c = self._packed_zeros(data, batch, self.hidden_size)
        else:
            h, c = self._ordered(hx[0], order), self._ordered(hx[1], order)
        self._check_data(data)
        self._check_packed_state(h, batch, size, "hidden[0]")
        self._check_packed_state(c, batch, self.hidden_size, "hidden[1]")
        output, h, c = torch._VF.lstm(
            data,
            batch_sizes,
            [h, c],
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        result = PackedSequence(output, batch_sizes, order, back)
        return result, (self._ordered(h, back), self._ordered(c, back))

    def _padded(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]]
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        batched = input.dim() == 3
        if not batched and input.dim() != 2:
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if hx is not None:
            for state in hx:
                if batched and state.dim() != 3:
                    raise RuntimeError(f"For batched 3-D input, hx and cx should also be 3-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")
                if not batched and state.dim() != 2:
                    raise RuntimeError(f"For unbatched 2-D input, hx and cx should also be 2-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        self._check_input(input)
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        if hx is None:
            h = self._zeros(input, size)
            c = self._zeros(input, self.hidden_size)
        else:
            h, c = hx
            if not batched:
                h, c = h.unsqueeze(1), c.unsqueeze(1)
            self._check_state(input, h, size, "hidden[0]")
            self._check_state(input, c, self.hidden_size, "hidden[1]")
        output, h, c = torch._VF.lstm(
            input,
            [h, c],
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            h, c = h.squeeze(1), c.squeeze(1)
        return output, (h, c)


class _OneState(_RNN):
    @torch.jit._overload_method
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        pass

    @torch.jit._overload_method
    def forward(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
        pass

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        else:
            return self._padded(input, hx)

    def _packed(self, input: PackedSequence, hx: Optional[Tensor]) -> Tuple[PackedSequence, Tensor]:
        data, batch_sizes, order, back = input
        batch = int(batch_sizes[0])
        if hx is None:
            h = self._packed_zeros(data, batch, self.hidden_size)
        else:
            h = self._ordered(hx, order)
        self._check_data(data)
        self._check_packed_state(h, batch, self.hidden_size, "hidden")
        output, h = self._run_packed(data, batch_sizes, h)
        return PackedSequence(output, batch_sizes, order, back), self._ordered(h, back)

    def _padded(self, input: Tensor, hx: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 3
        if not batched and input.dim() != 2:
            self._refuse_rank(input.dim())
        if hx is not None:
            if batched and hx.dim() != 3:
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
            if not batched and hx.dim() != 2:
                raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        self._check_input(input)
        if hx is None:
            h = self._zeros(input, self.hidden_size)
        else:
            h = hx if batched else hx.unsqueeze(1)
            self._check_state(input, h, self.hidden_size, "hidden")
        output, h = self._run(input, h)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            h = h.squeeze(1)
        return output, h


class GRU(_OneState):
    def __init__(self, *args, **kwargs):
        super().__init__()
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self._setup("GRU", 3, *args, **kwargs)

    def _refuse_rank(self, rank: int) -> None:
        raise ValueError(f"GRU: Expected input to be 2D or 3D, got {rank}D instead")

    def _run(self, input: Tensor, h: Tensor) -> Tuple[Tensor, Tensor]:
        return torch._VF.gru(
            input,
            h,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )

    def _run_packed(self, data: Tensor, batch_sizes: Tensor, h: Tensor) -> Tuple[Tensor, Tensor]:
        return torch._VF.gru(
            data,
            batch_sizes,
            h,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )


class RNN(_OneState):
    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", *args, **kwargs):
        super().__init__()
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError("Unknown nonlinearity '" + str(nonlinearity) + "'. Select from 'tanh' or 'relu'.")
        self._setup("RNN_" + nonlinearity.upper(), 1, input_size, hidden_size, num_layers, *args, **kwargs)

    def _refuse_rank(self, rank: int) -> None:
        raise ValueError(f"RNN: Expected input to be 2D or 3D, got {rank}D tensor instead")

    def _run(self, input: Tensor, h: Tensor) -> Tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            output, h = torch._VF.rnn_tanh(
                input,
                h,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        else:
            output, h = torch._VF.rnn_relu(
                input,
                h,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        return output, h

    def _run_packed(self, data: Tensor, batch_sizes: Tensor, h: Tensor) -> Tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            output, h = torch._VF.rnn_tanh(
                data,
                batch_sizes,
                h,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
            )
        else:
            output, h = torch._VF.rnn_relu(
                data,
                batch_sizes,
                h,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
            )
        return output, h


class _Cell(Module):
    __constants__ = ["input_size", "hidden_size", "bias"]

    def _setup(self, gates, input_size, hidden_size, bias=True, device=None, dtype=None):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0
        shapes = [("weight_ih", (gates * hidden_size, input_size)), ("weight_hh", (gates * hidden_size, hidden_size))]
        if bias:
            shapes += [("bias_ih", (gates * hidden_size,)), ("bias_hh", (gates * hidden_size,))]
        for name, shape in shapes:
            self.register_parameter(
                name, torch.nn.Parameter(torch.empty(shape, dtype=dtype).uniform_(-bound, bound))
            )
        if not bias:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)

    def _check(self, name: str, input: Tensor, hx: Optional[Tensor]) -> None:
        if input.dim() != 1 and input.dim() != 2:
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if hx is not None and hx.dim() != 1 and hx.dim() != 2:
            raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {hx.dim()}D instead")

    def _check_sizes(self, input: Tensor, state: Tensor, number: int) -> None:
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}")
        if input.size(0) != state.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{number} batch size {state.size(0)}")
        if state.size(1) != self.hidden_size:
            raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got {state.size(1)}, expected {self.hidden_size}")

    def _state(self, input: Tensor, hx: Optional[Tensor]) -> Tensor:
        """A batched state."""
        if hx is None:
            result = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        else:
            result = hx if hx.dim() == 2 else hx.unsqueeze(0)
        return result


class LSTMCell(_Cell):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup(4, *args, **kwargs)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        if input.dim() != 1 and input.dim() != 2:
            raise ValueError(f"LSTMCell: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if hx is not None:
            for number, state in enumerate(hx):
                if state.dim() != 1 and state.dim() != 2:
                    raise ValueError(f"LSTMCell: Expected hx[{number}] to be 1D or 2D, got {state.dim()}D instead")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            h, c = self._state(input, None), self._state(input, None)
        else:
            h, c = self._state(input, hx[0]), self._state(input, hx[1])
        self._check_sizes(input, h, 0)
        self._check_sizes(input, c, 1)
        h, c = torch._VF.lstm_cell(input, [h, c], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not batched:
            h, c = h.squeeze(0), c.squeeze(0)
        return h, c


class GRUCell(_Cell):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup(3, *args, **kwargs)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        self._check("GRUCell", input, hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        h = self._state(input, hx)
        self._check_sizes(input, h, 0)
        result = torch._VF.gru_cell(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else result.squeeze(0)


class RNNCell(_Cell):
    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__()
        self._setup(1, input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        self._check("RNNCell", input, hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        h = self._state(input, hx)
        self._check_sizes(input, h, 0)
        if self.nonlinearity == "tanh":
            result = torch._VF.rnn_tanh_cell(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        elif self.nonlinearity == "relu":
            result = torch._VF.rnn_relu_cell(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return result if batched else result.squeeze(0)


class RNNBase(Module):
    def __init__(self, mode, input_size, hidden_size, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults")
        return input


class RNNCellBase(Module):
    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults")
        return input
