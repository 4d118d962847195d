//! Methods of `torch.jit.ScriptModule` that need Python, autograd or other devices: each returns an error with the reason why it is unavailable.

use crate::error::{Error, Result};
use crate::model::Model;

const PYTHON: &str = "it is for Python's classes; source is loaded whole";
const NO_AUTOGRAD: &str = "there is no autograd";
const NO_DEVICE: &str = "the host is the only device";

macro_rules! unavailable {
    ($($name:ident $reason:expr;)*) => {
        impl Model {$(
            #[doc = concat!("`", stringify!($name), "` of PyTorch's modules, which has no counterpart here.")]
            ///
            /// ```
            /// # let source = "class Net(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n";
            /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
            #[doc = concat!("assert!(matches!(model.", stringify!($name), "(), Err(frazil::Error::NoCounterpart { .. })));")]
            /// # Ok::<(), frazil::Error>(())
            /// ```
            ///
            /// # Errors
            /// Always: [`Error::NoCounterpart`] with the reason.
            pub fn $name(&self) -> Result<()> {
                Err(Error::NoCounterpart { name: stringify!($name), reason: $reason })
            }
        )*}
    };
}

unavailable! {
    call_super_init PYTHON;
    cuda NO_DEVICE;
    dump_patches PYTHON;
    forward_magic_method PYTHON;
    get_extra_state PYTHON;
    ipu NO_DEVICE;
    mtia NO_DEVICE;
    register_backward_hook NO_AUTOGRAD;
    register_full_backward_hook NO_AUTOGRAD;
    register_full_backward_pre_hook NO_AUTOGRAD;
    set_extra_state PYTHON;
    xpu NO_DEVICE;
}
