//! Listing of a module's members by name: submodules, parameters and buffers.

use super::{ScriptModule, join, tensors};
use crate::error::{Error, Result};
use crate::support::setters::setters;
use frazil_ir::{AttributeKind, ClassKind, Constant, ObjectId, TensorData};
use frazil_runtime::import::Importer;
use frazil_runtime::{Tensor, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of paths that a walk lists. Modules that share submodules may have exponentially many paths.
const MAX_PATHS: usize = 1 << 20;

/// Options of [`ScriptModule::named_modules_with`] and [`ScriptModule::named_parameters`].
///
/// ```
/// use frazil::MemberOptions;
///
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n  self.same = self.fc\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// let names = |options: &MemberOptions| -> frazil::Result<Vec<String>> {
///     let parameters = model.root().named_parameters(options)?; // `self.fc` is also `self.same`
///     Ok(parameters.into_iter().map(|(name, _)| name).collect())
/// };
/// assert_eq!(names(&MemberOptions::default())?, ["fc.weight", "fc.bias"]);
/// assert!(names(&MemberOptions::own())?.is_empty());
/// let all = MemberOptions::default().prefix("net".to_owned()).remove_duplicate(false);
/// assert_eq!(names(&all)?, ["net.fc.weight", "net.fc.bias", "net.same.weight", "net.same.bias"]);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberOptions {
    /// Prefix of all listed names, followed by a dot unless it is empty.
    pub prefix: String,
    /// Whether members of submodules are listed, too.
    pub recurse: bool,
    /// Whether each tensor and module is listed once, under its first name.
    pub remove_duplicate: bool,
    /// Modules to be left out, together with the members that are reachable only through them.
    pub memo: HashSet<ObjectId>,
}

setters!(MemberOptions {
    prefix: String,
    recurse: bool,
    remove_duplicate: bool,
    memo: HashSet<ObjectId>,
});

impl Default for MemberOptions {
    fn default() -> MemberOptions {
        MemberOptions {
            prefix: String::new(),
            recurse: true,
            remove_duplicate: true,
            memo: HashSet::new(),
        }
    }
}

impl MemberOptions {
    /// Options for the members of one module, without those of its submodules.
    ///
    /// See [`MemberOptions`] for an example.
    pub fn own() -> MemberOptions {
        MemberOptions::default().recurse(false)
    }
}

impl<'m> ScriptModule<'m> {
    /// Returns the direct submodules (`Module.named_children`). Each object is listed once, under its first name.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// for (name, child) in model.root().named_children() {
    ///     assert_eq!((name, child.original_name()), ("fc", "Linear"));
    /// }
    /// assert_eq!(model.root().named_children().len(), 1);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn named_children(self) -> Vec<(&'m str, ScriptModule<'m>)> {
        let mut seen = HashSet::new();
        self.children().filter(|(_, child)| seen.insert(child.object)).collect()
    }

    /// Returns the direct submodules, under each of the names that they have in this module.
    pub(super) fn children(self) -> impl Iterator<Item = (&'m str, ScriptModule<'m>)> {
        self.slots().filter_map(move |(name, _, value)| match value {
            Constant::Object(id) => {
                let child = self.at(*id);
                (child.class()?.kind == ClassKind::Module).then_some((name, child))
            }
            _ => None,
        })
    }

    /// Returns this module under the name "" and all modules below it, parents first (`Module.named_modules`). Each object is listed once.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let modules = model.root().named_modules();
    /// assert!(modules.iter().map(|(path, _)| path).eq(["", "fc"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn named_modules(self) -> Vec<(String, ScriptModule<'m>)> {
        self.modules_once("", HashSet::new())
    }

    /// Returns the modules as [`named_modules`](Self::named_modules) does, with PyTorch's arguments: `memo`, `prefix`, and `remove_duplicate`.
    ///
    /// ```
    /// use frazil::MemberOptions;
    ///
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let options = MemberOptions::default().prefix("net".to_owned());
    /// let modules = model.root().named_modules_with(&options)?;
    /// assert!(modules.iter().map(|(path, _)| path).eq(["net", "net.fc"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If shared submodules have more paths than can be listed.
    pub fn named_modules_with(self, options: &MemberOptions) -> Result<Vec<(String, ScriptModule<'m>)>> {
        match (options.recurse, options.remove_duplicate) {
            (false, _) => Ok(vec![(options.prefix.clone(), self)]),
            (true, true) => Ok(self.modules_once(&options.prefix, options.memo.clone())),
            (true, false) => self.modules_each_time(options),
        }
    }

    fn modules_once(self, prefix: &str, memo: HashSet<ObjectId>) -> Vec<(String, ScriptModule<'m>)> {
        let mut seen = memo;
        // A work list instead of recursion, since untrusted archives determine the depth.
        let mut pending = vec![(prefix.to_owned(), self)];
        let mut out = Vec::new();
        while let Some((path, module)) = pending.pop() {
            if !seen.insert(module.object) {
                continue;
            }
            let children: Vec<_> = module.children().collect();
            for (name, child) in children.into_iter().rev() {
                pending.push((join(&path, name), child));
            }
            out.push((path, module));
        }
        out
    }

    fn modules_each_time(self, options: &MemberOptions) -> Result<Vec<(String, ScriptModule<'m>)>> {
        let mut pending = vec![(options.prefix.clone(), self, Vec::new())];
        let mut out = Vec::new();
        while let Some((path, module, above)) = pending.pop() {
            // A module that contains itself has infinitely many paths.
            if options.memo.contains(&module.object) || above.contains(&module.object) {
                continue;
            }
            let mut above = above;
            above.push(module.object);
            let children: Vec<_> = module.children().collect();
            for (name, child) in children.into_iter().rev() {
                pending.push((join(&path, name), child, above.clone()));
            }
            out.push((path, module));
            if out.len() > MAX_PATHS {
                return Err(Error::Attribute(format!(
                    "submodules have more than {MAX_PATHS} paths: they can be listed once each only"
                )));
            }
        }
        Ok(out)
    }

    /// Returns the parameters (`Module.named_parameters`), by dotted path: each tensor once.
    ///
    /// ```
    /// use frazil::MemberOptions;
    ///
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let parameters = model.root().named_parameters(&MemberOptions::default())?;
    /// assert!(parameters.iter().map(|(path, _)| path).eq(["fc.weight", "fc.bias"]));
    /// assert!(model.root().named_parameters(&MemberOptions::own())?.is_empty()); // all are of `fc`
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a tensor does not fit its storage; those of [`named_modules_with`](Self::named_modules_with).
    pub fn named_parameters(self, options: &MemberOptions) -> Result<Vec<(String, Tensor)>> {
        let modules = self.named_modules_with(options)?;
        tensors(tensors_of(modules, AttributeKind::Parameter, options.remove_duplicate))
    }

    /// Returns the buffers (`Module.named_buffers`) by dotted path, each tensor once. Buffers that are `None` are left out.
    ///
    /// See [`named_parameters`](Self::named_parameters) for an example.
    ///
    /// # Errors
    /// If a tensor does not fit its storage; those of [`named_modules_with`](Self::named_modules_with).
    pub fn named_buffers(self, options: &MemberOptions) -> Result<Vec<(String, Tensor)>> {
        let modules = self.named_modules_with(options)?;
        tensors(tensors_of(modules, AttributeKind::Buffer, options.remove_duplicate))
    }

    /// Returns this module and, with `recurse`, its submodules.
    pub(super) fn modules(self, recurse: bool) -> Vec<(String, ScriptModule<'m>)> {
        match recurse {
            true => self.named_modules(),
            false => vec![(String::new(), self)],
        }
    }

    /// Returns the parameters or buffers, as `kind` selects, each once.
    pub(super) fn named_tensors(self, kind: AttributeKind, recurse: bool) -> Vec<(String, &'m Arc<TensorData>)> {
        tensors_of(self.modules(recurse), kind, true)
    }

    /// Returns every attribute but submodules, by dotted path: parameters, buffers, and plain values.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let attributes = model.root().get_submodule("fc")?.named_attributes(&frazil::MemberOptions::own())?;
    /// assert!(attributes.iter().any(|(name, value)| name == "training" && matches!(value, Value::Bool(false))));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a tensor does not fit its storage; those of [`named_modules_with`](Self::named_modules_with).
    pub fn named_attributes(self, options: &MemberOptions) -> Result<Vec<(String, Value)>> {
        let mut importer = Importer::new();
        let mut out = Vec::new();
        for (path, module) in self.named_modules_with(options)? {
            for (name, _, value) in module.slots() {
                let submodule = matches!(value, Constant::Object(id)
                    if module.at(*id).class().is_some_and(|c| c.kind == ClassKind::Module));
                if !submodule {
                    out.push((join(&path, name), importer.value(value, Some(&**self.module))?));
                }
            }
        }
        Ok(out)
    }
}

/// Returns the parameters or buffers, as `kind` selects, of `modules`.
fn tensors_of(
    modules: Vec<(String, ScriptModule<'_>)>,
    kind: AttributeKind,
    remove_duplicate: bool,
) -> Vec<(String, &Arc<TensorData>)> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for (path, module) in modules {
        for (name, slot_kind, value) in module.slots() {
            if slot_kind == kind
                && let Constant::Tensor(t) = value
                && (seen.insert(Arc::as_ptr(t)) || !remove_duplicate)
            {
                out.push((join(&path, name), t));
            }
        }
    }
    out
}
