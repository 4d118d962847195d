"""The corpus's models with PyTorch: frozen and optimised for inference. Arguments: the corpus's folder of models, a name, threads."""
import sys, time, torch

torch.set_num_threads(int(sys.argv[3]))
for name in ("resnet18", "mobilenet_v2", "squeezenet1_1"):
    if sys.argv[2] not in name:
        continue
    m = torch.jit.load(f"{sys.argv[1]}/{name}_script/model.pt").eval()
    m = torch.jit.optimize_for_inference(torch.jit.freeze(m))
    x = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        for _ in range(5):
            m(x)
        times, begin = [], time.perf_counter()
        while time.perf_counter() - begin < 2:
            t = time.perf_counter()
            m(x)
            times.append((time.perf_counter() - t) * 1e3)
    times.sort()
    print(f"{name:14} threads {sys.argv[3]}  min {times[0]:7.3f} ms  median {times[len(times) // 2]:7.3f} ms", flush=True)
