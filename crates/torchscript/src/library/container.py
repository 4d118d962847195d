"""Modules that hold modules. What they hold are attributes by number or name, and code goes through them without a loop."""


class Sequential(Module):
    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def forward(self, input):
        for module in self:
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self)


class ModuleList(Module):
    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            for index, module in enumerate(modules):
                self.add_module(str(index), module)

    def __len__(self) -> int:
        return len(self)


class ModuleDict(Module):
    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            for key, module in dict(modules).items():
                self.add_module(key, module)

    def __len__(self) -> int:
        return len(self)


class ParameterList(Module):
    def __init__(self, values=None):
        super().__init__()
        if values is not None:
            for index, value in enumerate(values):
                self.register_parameter(str(index), value)


class ParameterDict(Module):
    def __init__(self, parameters=None):
        super().__init__()
        if parameters is not None:
            for key, value in dict(parameters).items():
                self.register_parameter(key, value)


class Container(Module):
    def __init__(self, **kwargs):
        super().__init__()
        for key, module in kwargs.items():
            self.add_module(key, module)


class DataParallel(Module):
    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults")
        return input
