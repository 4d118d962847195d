# Recurrent cells and layers. Gates lie side by side in the weights: r z n for GRU, i f g o for LSTM.

# A step of each kind of cell; `gi` is the input's part of the gates, linear(input, w_ih, b_ih).
def helper_gru_step(gi: Tensor, hx: Tensor, w_hh: Tensor, b_hh: Optional[Tensor]) -> Tensor:
    gh = torch.linear(hx, w_hh, b_hh)
    i_r, i_z, i_n = torch.chunk(gi, 3, -1)
    h_r, h_z, h_n = torch.chunk(gh, 3, -1)
    r = torch.sigmoid(i_r + h_r)
    z = torch.sigmoid(i_z + h_z)
    n = torch.tanh(i_n + r * h_n)
    return (hx - n) * z + n

def helper_lstm_step(gi: Tensor, hx: Tensor, cx: Tensor, w_hh: Tensor, b_hh: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    gates = gi + torch.linear(hx, w_hh, b_hh)
    i, f, g, o = torch.chunk(gates, 4, -1)
    c = torch.sigmoid(f) * cx + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c

def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return helper_gru_step(torch.linear(input, w_ih, b_ih), hx, w_hh, b_hh)

def lstm_cell(input: Tensor, hx: List[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    return helper_lstm_step(torch.linear(input, w_ih, b_ih), hx[0], hx[1], w_hh, b_hh)

def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.tanh(torch.linear(input, w_ih, b_ih) + torch.linear(hx, w_hh, b_hh))

def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.relu(torch.linear(input, w_ih, b_ih) + torch.linear(hx, w_hh, b_hh))

# All layers over packed data: rows of step t are those of the sizes[t] longest sequences, or of all `batch` sequences if there are no sizes.
# mode: 0 LSTM, 1 GRU, 2 tanh, 3 relu. The input's part of the gates does not wait for the steps: it is one product, as in PyTorch.
def helper_layers(mode: int, data: Tensor, sizes: List[int], length: int, batch: int, h0: Tensor, c0: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor, Tensor]:
    starts: List[int] = []
    total = 0
    for n in sizes:
        starts.append(total)
        total += n
    x = data
    directions = 1
    if bidirectional:
        directions = 2
    projected = mode == 0 and h0.size(2) != c0.size(2)
    width = 2
    if has_biases:
        width = 4
    if projected:
        width += 1
    last_h: List[Tensor] = []
    last_c: List[Tensor] = []
    for layer in range(num_layers):
        sides: List[Tensor] = []
        for direction in range(directions):
            at = layer * directions + direction
            w_ih = params[at * width]
            w_hh = params[at * width + 1]
            b_ih: Optional[Tensor] = None
            b_hh: Optional[Tensor] = None
            if has_biases:
                b_ih = params[at * width + 2]
                b_hh = params[at * width + 3]
            h = h0.select(0, at)
            c = c0.select(0, at)
            inputs = torch.linear(x, w_ih, b_ih)
            steps: List[Tensor] = []
            for t in range(length):
                step = t
                if direction == 1:
                    step = length - 1 - t
                n = batch
                start = step * batch
                if len(sizes) > 0:
                    n = sizes[step]
                    start = starts[step]
                whole = n == h.size(0)
                now = inputs.narrow(0, start, n)
                old_h = h
                old_c = c
                if not whole:
                    old_h = h.narrow(0, 0, n)
                    old_c = c.narrow(0, 0, n)
                new_c = old_c
                if mode == 0:
                    new_h, new_c = helper_lstm_step(now, old_h, old_c, w_hh, b_hh)
                    if projected:
                        new_h = torch.linear(new_h, params[at * width + width - 1])
                elif mode == 1:
                    new_h = helper_gru_step(now, old_h, w_hh, b_hh)
                elif mode == 2:
                    new_h = torch.tanh(now + torch.linear(old_h, w_hh, b_hh))
                else:
                    new_h = torch.relu(now + torch.linear(old_h, w_hh, b_hh))
                steps.append(new_h)
                if whole:
                    h = new_h
                    c = new_c
                else:
                    h = torch.cat([new_h, h.narrow(0, n, h.size(0) - n)], 0)
                    if mode == 0:
                        c = torch.cat([new_c, c.narrow(0, n, c.size(0) - n)], 0)
            if direction == 1:
                steps.reverse()
            sides.append(torch.cat(steps, 0))
            last_h.append(h)
            last_c.append(c)
        x = torch.cat(sides, -1)
        if train and dropout > 0.0 and layer < num_layers - 1:
            x = torch.dropout(x, dropout, True)
    return x, torch.stack(last_h, 0), torch.stack(last_c, 0)

# Sequences of one length, [time, batch, features], are packed data as they are.
def helper_even(mode: int, input: Tensor, h0: Tensor, c0: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    x = input
    if batch_first:
        x = x.transpose(0, 1)
    length = x.size(0)
    batch = x.size(1)
    if length == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    no_sizes: List[int] = []
    data, h, c = helper_layers(mode, x.reshape([length * batch, x.size(2)]), no_sizes, length, batch, h0, c0, params, has_biases, num_layers, dropout, train, bidirectional)
    out = data.reshape([length, batch, data.size(1)])
    if batch_first:
        out = out.transpose(0, 1)
    return out, h, c

def helper_sizes(batch_sizes: Tensor) -> List[int]:
    sizes: List[int] = batch_sizes.tolist()
    return sizes

def lstm__input(input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    out, h, c = helper_even(0, input, hx[0], hx[1], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return out, h, c

def lstm__data(data: Tensor, batch_sizes: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor, Tensor]:
    sizes = helper_sizes(batch_sizes)
    out, h, c = helper_layers(0, data, sizes, len(sizes), 0, hx[0], hx[1], params, has_biases, num_layers, dropout, train, bidirectional)
    return out, h, c

def gru__input(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    out, h, _ = helper_even(1, input, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return out, h

def gru__data(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor]:
    sizes = helper_sizes(batch_sizes)
    out, h, _ = helper_layers(1, data, sizes, len(sizes), 0, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return out, h

def rnn_tanh__input(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    out, h, _ = helper_even(2, input, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return out, h

def rnn_tanh__data(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor]:
    sizes = helper_sizes(batch_sizes)
    out, h, _ = helper_layers(2, data, sizes, len(sizes), 0, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return out, h

def rnn_relu__input(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    out, h, _ = helper_even(3, input, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return out, h

def rnn_relu__data(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor]:
    sizes = helper_sizes(batch_sizes)
    out, h, _ = helper_layers(3, data, sizes, len(sizes), 0, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return out, h

def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> Tuple[Tensor, Tensor]:
    x = input
    if batch_first:
        x = x.transpose(0, 1)
    if x.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    given: List[int] = lengths.tolist()
    if len(given) != x.size(1):
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(given)} (batch_size={x.size(1)})")
    if given[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    for i in range(1, len(given)):
        if given[i] > given[i - 1]:
            raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability.")
    rows: List[Tensor] = []
    sizes: List[int] = []
    n = len(given)
    for t in range(given[0]):
        while given[n - 1] <= t:
            n -= 1
        rows.append(x.select(0, t).narrow(0, 0, n))
        sizes.append(n)
    return torch.cat(rows, 0), torch.tensor(sizes)

def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: number, total_length: int) -> Tuple[Tensor, Tensor]:
    length = batch_sizes.size(0)
    if total_length > 0:
        if total_length < length:
            raise RuntimeError("Expected total_length to be at least the length of the longest sequence in input")
    steps: List[int] = batch_sizes.tolist()
    batch = steps[0]
    sizes = list(data.size())
    out_length = max(length, total_length)
    out = torch.full([out_length, batch] + sizes[1:], padding_value, dtype=data.dtype)
    lengths = [0] * batch
    at = 0
    for t in range(length):
        n = steps[t]
        out.select(0, t).narrow(0, 0, n).copy_(data.narrow(0, at, n))
        for i in range(n):
            lengths[i] += 1
        at += n
    if batch_first:
        out = out.transpose(0, 1)
    return out, torch.tensor(lengths)
