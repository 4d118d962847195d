//! Load, freeze, optimise, compile and run TorchScript models.
