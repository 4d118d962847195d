//! Check for classes of modules whose bases prevent the evaluation of their constructors.

use ruff_text_size::Ranged;

use super::maker::Maker;
use super::module_attributes::is_module_name;
use crate::error::Result;
use crate::names::{Ancestor, ClassRef, FoundBase, base, linearised};

/// Special methods that change how a class constructs objects or accesses attributes.
const HOOKS: &[&str] = &[
    "__delattr__",
    "__eq__",
    "__getattr__",
    "__getattribute__",
    "__init_subclass__",
    "__new__",
    "__setattr__",
];

impl Maker<'_> {
    /// Returns an error for classes that have unknown bases or change the access to attributes.
    pub(super) fn check_class(&mut self, class: &ClassRef, chain: &[ClassRef], node: &impl Ranged) -> Result<()> {
        for class in chain.iter().filter(|class| class.file.rules.is_source()) {
            let Some(def) = class.def() else { continue };
            for (number, expr) in def.bases().iter().enumerate() {
                if let FoundBase::Unknown(name) = base(self.names, class, number)? {
                    return self.beyond(&class.file, format!("the base class `{name}`"), expr);
                }
            }
            if let Some(hook) = HOOKS.iter().find(|hook| class.method(hook).is_some()) {
                return self.beyond(&class.file, format!("`{hook}` of a module"), def);
            }
        }
        // Classes behind `nn.Module` in the method resolution order do not override its methods.
        let links = linearised(self.names, class, 0)?.unwrap_or_default();
        for link in links.iter().skip_while(|link| !matches!(link, Ancestor::Module)) {
            let Ancestor::Class(behind) = link else { continue };
            let methods = behind
                .def()
                .into_iter()
                .flat_map(|def| &def.body)
                .filter_map(|member| member.as_function_def_stmt());
            if let Some(method) = methods.into_iter().find(|method| is_module_name(&method.name)) {
                return self.beyond(
                    &behind.file,
                    format!("`{}` of a base behind `nn.Module`", method.name),
                    node,
                );
            }
        }
        Ok(())
    }
}
