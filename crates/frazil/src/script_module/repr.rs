//! The text of modules as Python's `repr` prints them.

use super::ScriptModule;
use std::fmt::{self, Display, Formatter};

/// Maximum number of modules in a text. Modules that share submodules may have infinitely many paths.
const MAX_MODULES: usize = 100_000;

/// The text that PyTorch prints for the module, submodules included.
///
/// ```
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.act = nn.ReLU()\n \
/// # def forward(self, x): return self.act(x)\n";
/// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// let text = "RecursiveScriptModule(\n  original_name=Net\n  (act): RecursiveScriptModule(original_name=ReLU)\n)";
/// assert_eq!(model.root().to_string(), text);
/// # Ok::<(), frazil::Error>(())
/// ```
impl Display for ScriptModule<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        enum Step<'m> {
            Module(String, ScriptModule<'m>, Vec<frazil_ir::ObjectId>),
            Close(usize),
        }
        let mut pending = vec![Step::Module(String::new(), *self, Vec::new())];
        let mut named = 0;
        while let Some(step) = pending.pop() {
            let (label, module, above) = match step {
                Step::Module(label, module, above) => (label, module, above),
                Step::Close(depth) => {
                    write!(f, "\n{:1$})", "", 2 * depth)?;
                    continue;
                }
            };
            let depth = above.len();
            if depth > 0 {
                write!(f, "\n{:1$}({label}): ", "", 2 * depth)?;
            }
            named += 1;
            // The text of a module that contains itself would be infinite.
            if named > MAX_MODULES || above.contains(&module.object) {
                f.write_str("...")?;
                continue;
            }
            let children: Vec<_> = module.children().collect();
            if children.is_empty() {
                write!(f, "{}({})", module.python_class(), module.extra_repr())?;
                continue;
            }
            let indent = 2 * (depth + 1);
            write!(f, "{}(\n{:indent$}{}", module.python_class(), "", module.extra_repr())?;
            let mut above = above;
            above.push(module.object);
            pending.push(Step::Close(depth));
            for (name, child) in children.into_iter().rev() {
                pending.push(Step::Module(name.to_owned(), child, above.clone()));
            }
        }
        Ok(())
    }
}

impl ScriptModule<'_> {
    /// Returns the name of the Python class that wraps the module in PyTorch.
    fn python_class(self) -> &'static str {
        "RecursiveScriptModule"
    }
}
