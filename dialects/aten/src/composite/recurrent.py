# Recurrent cells and layers. Gates lie side by side in the weights: r z n for GRU, i f g o for LSTM.

def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    gi = torch.linear(input, w_ih, b_ih)
    gh = torch.linear(hx, w_hh, b_hh)
    i_r, i_z, i_n = torch.chunk(gi, 3, -1)
    h_r, h_z, h_n = torch.chunk(gh, 3, -1)
    r = torch.sigmoid(i_r + h_r)
    z = torch.sigmoid(i_z + h_z)
    n = torch.tanh(i_n + r * h_n)
    return (hx - n) * z + n

def lstm_cell(input: Tensor, hx: List[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    gates = torch.linear(input, w_ih, b_ih) + torch.linear(hx[0], w_hh, b_hh)
    i, f, g, o = torch.chunk(gates, 4, -1)
    c = torch.sigmoid(f) * hx[1] + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c

def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.tanh(torch.linear(input, w_ih, b_ih) + torch.linear(hx, w_hh, b_hh))

def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.relu(torch.linear(input, w_ih, b_ih) + torch.linear(hx, w_hh, b_hh))

def gru__input(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    x = input
    if batch_first:
        x = x.transpose(0, 1)
    directions = 1
    if bidirectional:
        directions = 2
    width = 2
    if has_biases:
        width = 4
    last: List[Tensor] = []
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
            h = hx.select(0, at)
            steps: List[Tensor] = []
            for t in range(x.size(0)):
                step = t
                if direction == 1:
                    step = x.size(0) - 1 - t
                h = torch.gru_cell(x.select(0, step), h, w_ih, w_hh, b_ih, b_hh)
                steps.append(h)
            if direction == 1:
                steps.reverse()
            sides.append(torch.stack(steps, 0))
            last.append(h)
        x = torch.cat(sides, -1)
    if batch_first:
        x = x.transpose(0, 1)
    return x, torch.stack(last, 0)

def rnn_tanh__input(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    x = input
    if batch_first:
        x = x.transpose(0, 1)
    directions = 1
    if bidirectional:
        directions = 2
    width = 2
    if has_biases:
        width = 4
    last: List[Tensor] = []
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
            h = hx.select(0, at)
            steps: List[Tensor] = []
            for t in range(x.size(0)):
                step = t
                if direction == 1:
                    step = x.size(0) - 1 - t
                h = torch.rnn_tanh_cell(x.select(0, step), h, w_ih, w_hh, b_ih, b_hh)
                steps.append(h)
            if direction == 1:
                steps.reverse()
            sides.append(torch.stack(steps, 0))
            last.append(h)
        x = torch.cat(sides, -1)
    if batch_first:
        x = x.transpose(0, 1)
    return x, torch.stack(last, 0)

def lstm__input(input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    x = input
    if batch_first:
        x = x.transpose(0, 1)
    directions = 1
    if bidirectional:
        directions = 2
    width = 2
    if has_biases:
        width = 4
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
            h = hx[0].select(0, at)
            c = hx[1].select(0, at)
            steps: List[Tensor] = []
            for t in range(x.size(0)):
                step = t
                if direction == 1:
                    step = x.size(0) - 1 - t
                h, c = torch.lstm_cell(x.select(0, step), [h, c], w_ih, w_hh, b_ih, b_hh)
                steps.append(h)
            if direction == 1:
                steps.reverse()
            sides.append(torch.stack(steps, 0))
            last_h.append(h)
            last_c.append(c)
        x = torch.cat(sides, -1)
    if batch_first:
        x = x.transpose(0, 1)
    return x, torch.stack(last_h, 0), torch.stack(last_c, 0)

def lstm__data(data: Tensor, batch_sizes: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor, Tensor]:
    sizes: List[int] = []
    for i in range(batch_sizes.size(0)):
        sizes.append(int(batch_sizes.select(0, i)))
    starts: List[int] = []
    total = 0
    for n in sizes:
        starts.append(total)
        total += n
    x = data
    directions = 1
    if bidirectional:
        directions = 2
    width = 2
    if has_biases:
        width = 4
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
            h = hx[0].select(0, at).clone()
            c = hx[1].select(0, at).clone()
            steps: List[Tensor] = []
            for t in range(len(sizes)):
                step = t
                if direction == 1:
                    step = len(sizes) - 1 - t
                n = sizes[step]
                now_h, now_c = torch.lstm_cell(x.narrow(0, starts[step], n), [h.narrow(0, 0, n), c.narrow(0, 0, n)], w_ih, w_hh, b_ih, b_hh)
                h = torch.cat([now_h, h.narrow(0, n, h.size(0) - n)], 0)
                c = torch.cat([now_c, c.narrow(0, n, c.size(0) - n)], 0)
                steps.append(now_h)
            if direction == 1:
                steps.reverse()
            sides.append(torch.cat(steps, 0))
            last_h.append(h)
            last_c.append(c)
        x = torch.cat(sides, -1)
    return x, torch.stack(last_h, 0), torch.stack(last_c, 0)

def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> Tuple[Tensor, Tensor]:
    x = input
    if batch_first:
        x = x.transpose(0, 1)
    longest = int(lengths.max())
    rows: List[Tensor] = []
    sizes: List[int] = []
    for t in range(longest):
        n = int((lengths > t).sum())
        rows.append(x.select(0, t).narrow(0, 0, n))
        sizes.append(n)
    return torch.cat(rows, 0), torch.tensor(sizes)

def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: number, total_length: int) -> Tuple[Tensor, Tensor]:
    length = batch_sizes.size(0)
    if total_length > 0:
        if total_length < length:
            raise RuntimeError("Expected total_length to be at least the length of the longest sequence in input")
    batch = int(batch_sizes.select(0, 0))
    sizes = list(data.size())
    out_length = max(length, total_length)
    out = torch.full([out_length, batch] + sizes[1:], padding_value, dtype=data.dtype)
    lengths = torch.zeros([batch], dtype=torch.int64)
    at = 0
    for t in range(length):
        n = int(batch_sizes.select(0, t))
        out.select(0, t).narrow(0, 0, n).copy_(data.narrow(0, at, n))
        lengths.narrow(0, 0, n).add_(1)
        at += n
    if batch_first:
        out = out.transpose(0, 1)
    return out, lengths
