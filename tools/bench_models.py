#!/usr/bin/env python3
"""Makes the models that docs/benchmarks.md measures, with random weights, as NAME/model.pt, case.json and tensors.safetensors below OUT.

    bench_models.py OUT [NAME... | kernels | families]

needs `torch`, `torchvision` and `safetensors` from PyPI. What torchvision has is scripted, the transformers are plain modules with
`scaled_dot_product_attention`, traced. `kernels` are models of one operator each, `families` others that people run. A model that is
there is left as it is.
"""

import json
import pathlib
import sys
from typing import List

import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """A layer of a transformer: normalisation before each part (GPT-2, ViT) or after it (BERT)."""

    def __init__(self, width: int, heads: int, causal: bool, before: bool, gelu: str):
        super().__init__()
        self.before = before
        self.attention = Attention(width, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate=gelu), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        if self.before:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Text(nn.Module):
    """Tokens in; the last hidden states of an encoder, or the logits of a decoder whose head shares the embedding."""

    def __init__(self, vocabulary: int, positions: int, width: int, heads: int, layers: int, decoder: bool):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, heads, decoder, decoder, "tanh" if decoder else "none") for _ in range(layers)))
        self.decoder = decoder

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        if self.decoder:
            return F.linear(self.norm(self.layers(x)), self.tokens.weight)
        return self.layers(self.norm(x))


class Vision(nn.Module):
    """DeiT-small: patches of 16 by 16 and a class token."""

    def __init__(self, width: int = 384, heads: int = 6, layers: int = 12, patches: int = 196):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, patches + 1, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, heads, False, True, "none") for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


class Double(nn.Sequential):
    def __init__(self, inputs: int, outputs: int):
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, c: int = 16):
        super().__init__()
        self.down1, self.down2, self.down3 = Double(3, c), Double(c, 2 * c), Double(2 * c, 4 * c)
        self.bottom = Double(4 * c, 8 * c)
        self.up3, self.up2, self.up1 = (nn.ConvTranspose2d(2 * k * c, k * c, 2, 2) for k in (4, 2, 1))
        self.join3, self.join2, self.join1 = Double(8 * c, 4 * c), Double(4 * c, 2 * c), Double(2 * c, c)
        self.head = nn.Conv2d(c, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.down3(F.max_pool2d(b, 2))
        d = self.bottom(F.max_pool2d(c, 2))
        c = self.join3(torch.cat([c, self.up3(d)], 1))
        b = self.join2(torch.cat([b, self.up2(c)], 1))
        a = self.join1(torch.cat([a, self.up1(b)], 1))
        return self.head(a)


class LstmLoop(nn.Module):
    """A loop over time written by hand, as scripted recurrent models have it."""

    def __init__(self, width: int = 256):
        super().__init__()
        self.width = width
        self.input, self.hidden = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.width)
        c = torch.zeros(x.size(1), self.width)
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            i, f, g, o = (self.input(x[t]) + self.hidden(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs)


class Recurrent(nn.Module):
    """PyTorch's own layers over 64 steps of 256 features."""

    def __init__(self, kind: str, layers: int, both_ways: bool):
        super().__init__()
        self.layers = getattr(nn, kind)(256, 256, layers, bidirectional=both_ways)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)[0]


def image(size: int = 224) -> Tensor:
    return torch.randn(1, 3, size, size)


def zoo(name: str):
    return lambda: torch.jit.script(getattr(torchvision.models, name)(weights=None).eval()), image


def traced(module, argument):
    return lambda: torch.jit.trace(module().eval(), argument(), check_trace=False), argument


def families() -> dict:
    """What torchvision has of other families, and layers that many models are made of."""
    names = (
        "convnext_tiny densenet121 efficientnet_v2_s mnasnet1_0 mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_y_800mf resnet34 "
        "resnet101 resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0 squeezenet1_0 vgg11_bn")
    models = {name: zoo(name) for name in names.split()}
    for name, size in (("googlenet", 224), ("inception_v3", 299), ("swin_t", 224), ("vit_b_16", 224)):
        models[name] = traced(lambda name=name: getattr(torchvision.models, name)(weights=None), lambda size=size: image(size))
    clip = lambda: torch.randn(1, 3, 8, 112, 112)
    models["r3d_18"] = lambda: torch.jit.script(torchvision.models.video.r3d_18(weights=None).eval()), clip
    steps = lambda: torch.randn(64, 1, 256)
    models["lstm_2_layers"] = traced(lambda: Recurrent("LSTM", 2, False), steps)
    models["gru_both_ways"] = traced(lambda: Recurrent("GRU", 1, True), steps)
    return models


def text(vocabulary: int, positions: int, length: int, decoder: bool):
    def tokens() -> Tensor:
        return torch.randint(vocabulary, (1, length))

    return lambda: torch.jit.trace(Text(vocabulary, positions, 768, 12, 12, decoder).eval(), tokens()), tokens


def perceptron():
    return torch.jit.script(nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)).eval())


def operator(module: nn.Module, *shape: int):
    return lambda: torch.jit.script(module.eval()), lambda: torch.randn(shape)


def kernels() -> dict:
    """Products, the convolutions of ResNet and MobileNet, and what is bound by memory."""
    models = {f"gemm_{n}": operator(nn.Linear(n, n, bias=False), n, n) for n in (256, 512, 768, 1024, 1536, 2048)}
    for channels, outputs, size, kernel, stride in (
        (64, 64, 56, 3, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1), (128, 128, 56, 3, 2),
        (256, 64, 56, 1, 1), (64, 256, 56, 1, 1), (512, 128, 28, 1, 1), (1024, 256, 14, 1, 1), (512, 2048, 7, 1, 1)):
        conv = nn.Conv2d(channels, outputs, kernel, stride, kernel // 2, bias=False)
        models[f"conv{kernel}x{kernel}_s{stride}_{channels}_{outputs}_{size}"] = operator(conv, 1, channels, size, size)
    for channels, size, stride in ((32, 112, 1), (96, 112, 2), (144, 56, 1), (192, 28, 1), (384, 14, 1), (960, 7, 1)):
        conv = nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False)
        models[f"depthwise_s{stride}_{channels}_{size}"] = operator(conv, 1, channels, size, size)
    rows = {"relu": nn.ReLU(), "gelu": nn.GELU(), "silu": nn.SiLU(), "softmax": nn.Softmax(-1), "layer_norm": nn.LayerNorm(1024)}
    # 16 MB in and out: more than the caches of a core.
    return models | {name: operator(module, 4096, 1024) for name, module in rows.items()}


# A model's name, what makes it, and what makes an input of it.
MODELS = {
    "mlp": (perceptron, lambda: torch.randn(1, 784)),
    "squeezenet1_1": zoo("squeezenet1_1"),
    "unet": (lambda: torch.jit.script(UNet().eval()), lambda: image(128)),
    "mobilenet_v2": zoo("mobilenet_v2"),
    "efficientnet_b0": zoo("efficientnet_b0"),
    "resnet18": zoo("resnet18"),
    "resnet50": zoo("resnet50"),
    "lstm_loop": (lambda: torch.jit.script(LstmLoop().eval()), lambda: torch.randn(32, 1, 256)),
    "deit_small": (lambda: torch.jit.trace(Vision().eval(), image()), image),
    "bert_base_128": text(30522, 512, 128, False),
    "gpt2_64": text(50257, 1024, 64, True),
}


def write(name: str, folder: pathlib.Path, model, x: Tensor) -> None:
    """Writes a model, and a case of one call with `x`."""
    with torch.no_grad():
        result = model(x)
    tensors = {"call0.arg0": x, "call0.result": result.contiguous()}
    call = {"args": [{"tensor": "call0.arg0"}], "result": {"tensor": "call0.result"}}
    folder.mkdir(parents=True)
    save_file(tensors, folder / "tensors.safetensors")
    model.save(folder / "model.pt")
    # Last: a folder with a case is whole.
    (folder / "case.json").write_text(json.dumps({"name": name, "method": "forward", "rtol": 1e-3, "atol": 1e-3, "calls": [call]}))


def make(name: str, folder: pathlib.Path) -> None:
    torch.manual_seed(0)
    module, argument = (MODELS | kernels() | families())[name]
    with torch.no_grad():
        model, x = module(), argument()
    write(name, folder, model, x)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    groups = {"kernels": kernels(), "families": families()}
    names = [one for name in sys.argv[2:] or MODELS for one in groups.get(name, [name])]
    known = [*MODELS, *(name for group in groups.values() for name in group)]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no such model: {', '.join(unknown)}; there are {', '.join([*groups, *known])}")
    for name in names:
        folder = pathlib.Path(sys.argv[1], name)
        if not (folder / "case.json").exists():
            make(name, folder)


if __name__ == "__main__":
    main()
