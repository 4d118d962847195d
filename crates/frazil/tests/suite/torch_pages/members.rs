//! Parameters, buffers and submodules by name, and the text of modules.

use super::module::{Arguments, Module, join};
use super::objects::{Failure, Kwargs, Object, Outcome};
use frazil::{MemberOptions, Tensor};

fn tensors(pairs: Vec<(String, Tensor)>) -> Object {
    Object::pairs(
        pairs
            .into_iter()
            .map(|(name, tensor)| (name, Object::Value(tensor.into()))),
    )
}

impl Module {
    /// Returns the text of `str(module)`.
    pub fn text(&self) -> Result<String, Failure> {
        if self.method.is_some() {
            return Err(Failure::lacks("the text of a function"));
        }
        Ok(self.model()?.root().get_submodule(&self.path)?.to_string())
    }

    /// Calls methods that list members; `None` for other methods.
    pub(super) fn members(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
        let known: &[&str] = match name {
            "parameters" | "buffers" => &["recurse"],
            "named_parameters" | "named_buffers" => &["prefix", "recurse", "remove_duplicate"],
            "named_modules" => &["memo", "prefix", "remove_duplicate"],
            "children" | "named_children" | "modules" => &[],
            _ => return None,
        };
        Some(self.listed(name, args, kwargs, known))
    }

    fn listed(&self, name: &str, args: &[Object], kwargs: &Kwargs, known: &[&str]) -> Outcome {
        let arguments = Arguments::of(name, args, kwargs, known)?;
        let model = self.model()?;
        let module = model.root().get_submodule(&self.path)?;
        let mut options = MemberOptions::default();
        for (index, &known) in known.iter().enumerate() {
            match known {
                "prefix" if arguments.get(index, known).is_some() => options.prefix = arguments.text(index, known)?,
                "recurse" => options.recurse = arguments.flag(index, known, true)?,
                "remove_duplicate" => options.remove_duplicate = arguments.flag(index, known, true)?,
                "memo" => {
                    let memo = arguments.get(index, known).and_then(Object::items);
                    for object in memo.unwrap_or_default() {
                        let Object::Module(part) = object else { continue };
                        options.memo.insert(model.root().get_submodule(&part.path)?.id());
                    }
                }
                _ => {}
            }
        }
        // Names have the prefix; the members do not.
        let prefix = options.prefix.len();
        let parts = |names: Vec<String>, prefix: usize| {
            Object::pairs(names.into_iter().map(|name| {
                let path = name[prefix..].trim_start_matches('.').to_owned();
                let object = match path.is_empty() {
                    true => Object::Module(self.clone()),
                    false => self.part(join(&self.path, &path), None),
                };
                (name, object)
            }))
        };
        let pairs = match name {
            "named_parameters" | "parameters" => tensors(module.named_parameters(&options)?),
            "named_buffers" | "buffers" => tensors(module.named_buffers(&options)?),
            "named_children" | "children" => {
                let names = module.named_children().into_iter().map(|(name, _)| name.to_owned());
                parts(names.collect(), 0)
            }
            _ => {
                let modules = module.named_modules_with(&options)?;
                parts(modules.into_iter().map(|(name, _)| name).collect(), prefix)
            }
        };
        if name.starts_with("named_") {
            return Ok(pairs);
        }
        let items = pairs.items().unwrap_or_default().into_iter();
        Ok(Object::List(items.filter_map(|pair| pair.items()?.pop()).collect()))
    }
}
