"""The layers of layers.rs with PyTorch: oneDNN's blocked layout with prepacked weights, channels_last, and plain.

Arguments: layers.rs, a substring of the layers to run, threads."""
import re, sys, time
import torch
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
wanted = sys.argv[2] if len(sys.argv) > 2 else ""
text = open(sys.argv[1]).read()
rows = re.findall(r'\("([^"]+)", (\d+), (\d+), (\d+), (\d+), (\d+), (\d+), (\d+), (\w+)\)', text)


def best(f):
    t = 1e9
    begin, n = time.perf_counter(), 1
    while time.perf_counter() - begin < 0.12:
        s = time.perf_counter()
        for _ in range(n):
            f()
        d = (time.perf_counter() - s) / n
        t = min(t, d)
        n = int(min(max(5e-4 / d, 1), 1000))
    return t * 1e6


with torch.no_grad():
    for name, *numbers, _ in rows:
        if wanted not in name:
            continue
        c, o, g, h, k, s, p = map(int, numbers)
        if g == 0:
            x, w, b = torch.randn(1, c), torch.randn(o, c), torch.randn(o)
            print(f"{name:34} {best(lambda: F.linear(x, w, b)):9.1f} us")
            continue
        x, b = torch.randn(1, c, h, h), torch.randn(o)
        w = torch.randn(o, c // g, k, k)
        m = torch.nn.Conv2d(c, o, k, s, p, groups=g)
        results = {"plain": best(lambda: F.conv2d(x, w, b, s, p, 1, g))}
        xl, wl = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
        results["last"] = best(lambda: F.conv2d(xl, wl, b, s, p, 1, g))
        xm = x.to_mkldnn()
        wm = torch._C._nn.mkldnn_reorder_conv2d_weight(w.to_mkldnn(), [p, p], [s, s], [1, 1], g, list(x.shape))
        results["blocked"] = best(lambda: torch.ops.aten.mkldnn_convolution(xm, wm, b, [p, p], [s, s], [1, 1], g))
        print(f"{name:34} {min(results.values()):9.1f} us  " + "  ".join(f"{k} {v:8.1f}" for k, v in results.items()), flush=True)
    for name, m, n, k in re.findall(r'\("([^"]+)", (\d+), (\d+), (\d+)\)', text):
        if wanted in name:
            x, w, b = torch.randn(int(m), int(k)), torch.randn(int(n), int(k)), torch.randn(int(n))
            wt = w.t().contiguous()
            print(f"{name:34} {min(best(lambda: F.linear(x, w, b)), best(lambda: torch.addmm(b, x, wt))):9.1f} us")
