# PyTorch's own layers of transformers.
#
# for WIDTH: 64 | 128 | 256 | 512 | 768
# for ACT: 'relu' | 'gelu'
# for FIRST: True | False
# size BATCH: 1 2 5
# size LENGTH: 1 2 7 33 100
# input: BATCH LENGTH {WIDTH}
net = nn.TransformerEncoderLayer({WIDTH}, {WIDTH} // 64, 4 * {WIDTH}, activation={ACT}, norm_first={FIRST}, batch_first=True)
