//! TorchScript sources for the parts of `torch` that PyTorch defines in Python.
//!
//! The sources are written for this project, in `.py` files beside this one. They are compiled when a program first
//! refers to them.

/// Lists the sources of the library: the qualifier of the definitions, the file name, the text.
macro_rules! sources {
    ($($qualifier:literal $file:literal;)*) => {
        &[$((concat!("__torch__.", $qualifier), $file, include_str!($file)),)*]
    };
}

const SOURCES: &[(&str, &str, &str)] = sources! {
    "torch.autograd.grad_mode" "grad_mode.py";
    "torch.autograd.profiler" "profiler.py";
    "torch.functional" "torch_functional.py";
    "torch.jit" "jit.py";
    "torch.jit._trace" "trace.py";
    "torch.nn._attention" "attention.py";
    "torch.nn._losses" "losses.py";
    "torch.nn._pooling" "pools.py";
    "torch.nn._resize" "resize.py";
    "torch.nn.functional" "functional.py";
    "torch.nn.modules.activation" "activation.py";
    "torch.nn.modules.adaptive" "adaptive.py";
    "torch.nn.modules.batchnorm" "batchnorm.py";
    "torch.nn.modules.channelshuffle" "channelshuffle.py";
    "torch.nn.modules.container" "container.py";
    "torch.nn.modules.conv" "conv.py";
    "torch.nn.modules.distance" "distance.py";
    "torch.nn.modules.dropout" "dropout.py";
    "torch.nn.modules.flatten" "flatten.py";
    "torch.nn.modules.fold" "fold.py";
    "torch.nn.modules.instancenorm" "instancenorm.py";
    "torch.nn.modules.linear" "linear.py";
    "torch.nn.modules.loss" "loss.py";
    "torch.nn.modules.normalization" "normalization.py";
    "torch.nn.modules.padding" "padding.py";
    "torch.nn.modules.pixelshuffle" "pixelshuffle.py";
    "torch.nn.modules.pooling" "pooling.py";
    "torch.nn.modules.rnn" "rnn.py";
    "torch.nn.modules.sparse" "sparse.py";
    "torch.nn.modules.transformer" "transformer.py";
    "torch.nn.modules.upsampling" "upsampling.py";
    "torch.nn.utils.rnn" "sequences.py";
};

/// Alternative Python names of library definitions.
const ALIASES: &[(&str, &str)] = &[
    ("torch.no_grad", "torch.autograd.grad_mode.no_grad"),
    (
        "torch.profiler.record_function",
        "torch.autograd.profiler.record_function",
    ),
    ("torch.jit.is_tracing", "torch.jit._trace.is_tracing"),
    (
        "torch.nn.Transformer.generate_square_subsequent_mask",
        "torch.nn.modules.transformer._generate_square_subsequent_mask",
    ),
    ("torch.nn.functional.threshold", "torch.nn.functional._threshold"),
];

/// Functions that Python exports under a shorter name, with their qualified names.
const GATHERED: &[(&str, &str)] = &[
    ("torch.", "__torch__.torch.functional"),
    ("torch.nn.functional.", "__torch__.torch.nn._attention"),
    ("torch.nn.functional.", "__torch__.torch.nn._losses"),
    ("torch.nn.functional.", "__torch__.torch.nn._pooling"),
    ("torch.nn.functional.", "__torch__.torch.nn._resize"),
];

/// Returns file name, text and qualifier of the library source that contains the definitions of `qualifier`.
pub(crate) fn find(qualifier: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let (qualifier, file, text) = SOURCES.iter().find(|(q, ..)| *q == qualifier)?;
    Some((file, text, qualifier))
}

/// Returns the qualified name of the Python name `path`, if a source of the library might define it.
pub(crate) fn name_of(path: &str) -> Option<String> {
    if let Some(class) = path.strip_prefix("torch.nn.")
        && !class.contains('.')
    {
        // `torch.nn` gathers the classes of all its modules.
        let head = format!("\nclass {class}(");
        let (qualifier, ..) = SOURCES
            .iter()
            .find(|(q, _, text)| q.starts_with("__torch__.torch.nn.modules.") && text.contains(&head))?;
        return Some(format!("{qualifier}.{class}"));
    }
    let path = ALIASES
        .iter()
        .find(|(alias, _)| *alias == path)
        .map_or(path, |(_, name)| name);
    for (prefix, qualifier) in GATHERED {
        if let Some(function) = path.strip_prefix(prefix)
            && !function.contains('.')
            && defines(qualifier, function)
        {
            return Some(format!("{qualifier}.{function}"));
        }
    }
    let name = format!("__torch__.{path}");
    let (qualifier, _) = name.rsplit_once('.')?;
    SOURCES.iter().any(|(q, ..)| *q == qualifier).then_some(name)
}

/// Returns whether `path` names a function of `torch.nn.functional` that PyTorch implements in Python.
pub(crate) fn is_functional(path: &str) -> bool {
    path.strip_prefix("torch.nn.functional.").is_some_and(|name| {
        let gathered = GATHERED.iter().map(|(_, qualifier)| *qualifier);
        gathered
            .chain(["__torch__.torch.nn.functional"])
            .any(|qualifier| defines(qualifier, name))
    })
}

/// Returns whether the library source of `qualifier` defines the function `name`.
fn defines(qualifier: &str, name: &str) -> bool {
    let heads = [format!("\ndef {name}("), format!("\n{name} = choose(")];
    find(qualifier).is_some_and(|(_, text, _)| heads.iter().any(|head| text.contains(head)))
}
