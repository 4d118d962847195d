def f(x: Tensor) -> Tensor:
    torch.set_grad_enabled(False)
    return x * 2
