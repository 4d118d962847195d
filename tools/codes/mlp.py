# Linear layers with each activation, over rows.
#
# for ACT: nn.ReLU() | nn.GELU() | nn.GELU('tanh') | nn.SiLU() | nn.Tanh() | nn.Sigmoid() | nn.LeakyReLU() | nn.ELU() | nn.Hardswish() | nn.Identity()
# for WIDTH: 24 | 64 | 128 | 768
# for OUT: 2 | 10 | 1000
# size ROWS: 1 2 3 4 5 6 7 8 33 300 5000
# input: ROWS 100
net = nn.Sequential(nn.Linear(100, {WIDTH}), {ACT}, nn.Linear({WIDTH}, 256), {ACT}, nn.Linear(256, {OUT}))
