//! Programs with steps: each step is an expression of Python that PyTorch evaluated, and that is evaluated here with our interface.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use super::folder;
use super::objects::{Failure, Kwargs, Module, Object, Outcome as Evaluated};
use crate::common::{listing, without_constants, without_defaults};
use crate::language::{OPERATOR, Outcome, value};
use frazil::{Loaded, Session, Value};
use frazil_recorded::compare;
use serde_json::Value as Json;

/// The values of a program's names.
#[derive(Clone)]
struct Scope {
    session: Session,
    source: String,
    names: BTreeMap<String, Object>,
}

/// Runs a program with steps and compares it with the recording.
pub fn compare(source: &str, recorded: &Json) -> Outcome {
    super::calls::forget_hooks();
    let mut scope = Scope {
        session: Session::new(),
        source: source.to_owned(),
        names: BTreeMap::new(),
    };
    for (name, file) in recorded.get("archives").and_then(Json::as_object).into_iter().flatten() {
        let path = folder().join("archives").join(file.as_str().unwrap());
        match scope.session.load(&path) {
            Ok(model) => scope.names.insert(name.clone(), Object::Module(Module::new(model))),
            Err(e) => return Outcome::Refuses(format!("{}: {e}", path.display())),
        };
    }
    for (name, json) in recorded.get("values").and_then(Json::as_object).into_iter().flatten() {
        scope.names.insert(name.clone(), Object::Value(value(json)));
    }
    let (mut results, mut accepted, mut messages) = (Vec::new(), false, Vec::new());
    for step in recorded["steps"].as_array().unwrap() {
        let text = step["text"].as_str().unwrap();
        match (scope.run(step), step.get("raises")) {
            (Ok(object), None) => {
                if let Some(expected) = step.get("value")
                    && let Err(difference) = scope.agrees(expected, &object)
                {
                    results.push(format!("{text}\n{difference}"));
                }
            }
            (Ok(_), Some(_)) => accepted = true,
            (Err(failure), None) => return Outcome::Refuses(format!("{text}\n{failure}")),
            (Err(failure), Some(raises)) => {
                if !is_message(&failure.to_string(), raises) {
                    messages.push(format!("{text}\n{failure}\nPyTorch: {}", raises["text"]));
                }
            }
        }
    }
    match (results.is_empty(), accepted, messages.is_empty()) {
        (false, _, _) => Outcome::Result(results.join("\n")),
        (true, true, _) => Outcome::Accepts,
        (true, false, false) => Outcome::Message(messages.join("\n")),
        (true, false, true) => Outcome::Same,
    }
}

thread_local! {
    /// The scopes of lambdas, and objects that hooks use: hooks must be `Send`, and objects are not.
    static SCOPES: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
    static HELD: RefCell<Vec<Object>> = const { RefCell::new(Vec::new()) };
}

/// Stores an object for hooks, which refer to it by the returned number.
pub fn hold(object: Object) -> usize {
    HELD.with_borrow_mut(|held| {
        held.push(object);
        held.len() - 1
    })
}

/// Returns the object with this number from [`hold`].
pub fn held(number: usize) -> Object {
    HELD.with_borrow(|held| held[number].clone())
}

/// A lambda of a step, with its captured names.
#[derive(Clone)]
pub struct Lambda {
    tree: Json,
    scope: usize,
}

/// Returns the value of a lambda of a step for given arguments.
pub fn applied(lambda: &Lambda, args: Vec<Object>) -> Evaluated {
    let names = lambda.tree["lambda"].as_array().unwrap().iter();
    let mut scope = SCOPES.with_borrow(|scopes| scopes[lambda.scope].clone());
    scope
        .names
        .extend(names.map(|name| name.as_str().unwrap().to_owned()).zip(args));
    scope.evaluate(&lambda.tree["body"])
}

/// Returns the text without the mangling numbers of classes.
fn without_mangling(text: &str) -> String {
    let mut parts = text.split("___torch_mangle_");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += part
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start_matches('.');
    }
    out
}

/// Returns whether our message agrees with PyTorch's. For missing attributes, and arguments that Python itself refuses, only the names are compared.
fn is_message(ours: &str, raises: &Json) -> bool {
    let ours = without_mangling(ours);
    // The text of a KeyError is its key as Python's `repr` writes it.
    let plain = |text: &str| match raises["type"].as_str() {
        Some("KeyError") => without_mangling(text.trim_matches('\'')).replace("\\'", "'"),
        _ => without_mangling(text),
    };
    let text = plain(raises["text"].as_str().unwrap());
    let last = plain(raises["last"].as_str().unwrap());
    if matches!(raises["type"].as_str(), Some("AttributeError" | "TypeError")) {
        let name = text.rsplit(['\'', '`']).nth(1).unwrap_or_default();
        return ours.contains(name);
    }
    let first = text.lines().next().unwrap_or_default().trim_matches('"');
    let raised = last.split_once(": ").map_or("", |(_, message)| message);
    ours.contains(first) || !raised.is_empty() && ours.contains(raised)
}

impl Scope {
    /// Runs a step, and returns the value of its expression.
    fn run(&mut self, step: &Json) -> Evaluated {
        let object = self.evaluate(&step["expr"])?;
        if let Some(name) = step.get("to") {
            self.names.insert(name.as_str().unwrap().to_owned(), object.clone());
        } else if let Some(of) = step.get("of") {
            if step["attr"] == "requires_grad"
                && let Some((module, name)) = self.tensor_of_module(of)?
            {
                module.set_requires_grad(&name, object.is_true())?;
                return Ok(object);
            }
            let Object::Module(module) = self.evaluate(of)? else {
                return Err(Failure::lacks("attributes of what is no module"));
            };
            let name = step["attr"].as_str().unwrap();
            match &object {
                Object::Module(_) => {
                    drop(module.call_method("set_submodule", &[Object::str(name), object.clone()], &vec![])?)
                }
                _ => module.set(name, &object.value()?)?,
            }
        }
        Ok(object)
    }

    fn all(&self, items: &Json) -> Result<Vec<Object>, Failure> {
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| self.evaluate(item))
            .collect()
    }

    fn evaluate(&self, tree: &Json) -> Evaluated {
        let (key, body) = tree.as_object().unwrap().iter().next().unwrap();
        Ok(match key.as_str() {
            "const" => Object::Value(value(body)),
            "dtype" => Object::DType(body.as_str().unwrap().to_owned()),
            "memory_format" => Object::MemoryFormat(body.as_str().unwrap().to_owned()),
            "name" => self.named(body.as_str().unwrap())?,
            "list" => Object::List(self.all(body)?),
            "tuple" => Object::Tuple(self.all(body)?),
            "dict" => {
                let pair = |pair: &Json| Ok((self.evaluate(&pair[0])?, self.evaluate(&pair[1])?));
                let pairs: Result<Vec<_>, Failure> = body.as_array().unwrap().iter().map(pair).collect();
                Object::Dict(pairs?)
            }
            "not" => Object::Value(Value::Bool(!self.evaluate(body)?.is_true())),
            _ => return self.composed(tree),
        })
    }

    /// Returns the module and the name of `module.name`, if that is a tensor.
    fn tensor_of_module(&self, tree: &Json) -> Result<Option<(Module, String)>, Failure> {
        let Some(name) = tree.get("attr").and_then(Json::as_str) else {
            return Ok(None);
        };
        let Object::Module(module) = self.evaluate(&tree["of"])? else {
            return Ok(None);
        };
        let is_tensor = matches!(module.attribute(name), Ok(Object::Value(Value::Tensor(_))));
        Ok(is_tensor.then(|| (module, name.to_owned())))
    }

    fn composed(&self, tree: &Json) -> Evaluated {
        if let Some(call) = tree.get("call") {
            return self.call(call, tree);
        }
        if let Some(attr) = tree.get("attr") {
            return self.evaluate(&tree["of"])?.attribute(attr.as_str().unwrap());
        }
        if let Some(of) = tree.get("index") {
            return self.evaluate(of)?.item(&self.evaluate(&tree["at"])?);
        }
        if let Some(operator) = tree.get("binary") {
            let (left, right) = (self.evaluate(&tree["left"])?, self.evaluate(&tree["right"])?);
            let symbol = match operator.as_str().unwrap() {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                _ => "/",
            };
            return self.computed(&format!("a {symbol} b"), &[left, right]);
        }
        if let Some(comparison) = tree.get("compare") {
            let (left, right) = (self.evaluate(&tree["left"])?, self.evaluate(&tree["right"])?);
            let contains = || -> Result<bool, Failure> {
                match &right {
                    Object::Dict(_) | Object::List(_) | Object::Value(Value::Dict(_)) => {
                        let names = super::objects::helper("list", vec![right.clone()], Vec::new())?;
                        let names = names.items().unwrap_or_default();
                        let left = left.text()?;
                        Ok(names.iter().any(|name| name.text().is_ok_and(|name| name == left)))
                    }
                    _ => Ok(right.text()?.contains(&left.text()?)),
                }
            };
            return Ok(Object::Value(Value::Bool(match comparison.as_str().unwrap() {
                "in" => contains()?,
                "not in" => !contains()?,
                _ => return self.computed("a == b", &[left, right]),
            })));
        }
        if tree.get("lambda").is_some() {
            let scope = SCOPES.with_borrow_mut(|scopes| {
                scopes.push(self.clone());
                scopes.len() - 1
            });
            return Ok(Object::Function(Lambda {
                tree: tree.clone(),
                scope,
            }));
        }
        Err(Failure::lacks("this expression"))
    }

    fn named(&self, name: &str) -> Evaluated {
        match self.names.get(name) {
            Some(object) => Ok(object.clone()),
            // A function of the source is compiled when it is used.
            None if self.source.contains(&format!("def {name}(")) && !name.contains('.') => self.function(name),
            None => Ok(Object::Name(name.to_owned())),
        }
    }

    /// Returns the function `name` of the source.
    fn function(&self, name: &str) -> Evaluated {
        let loaded = self.loaded(&self.source)?;
        Ok(Object::Module(Module::function(loaded, name)))
    }

    fn loaded(&self, source: &str) -> Result<Loaded, Failure> {
        Ok(self
            .session
            .load_bytes(Path::new("program.py"), source.as_bytes().to_vec())?)
    }

    /// Returns the module that an expression such as `M().eval()` makes. Like PyTorch's modules, it is initially in training mode.
    fn made(&self, expression: &str) -> Evaluated {
        let expression = expression.trim();
        if !expression.contains('(') {
            return self.named(expression);
        }
        let (making, training) = match expression.strip_suffix(".eval()") {
            Some(making) => (making, false),
            None => (expression.strip_suffix(".train()").unwrap_or(expression), true),
        };
        let source = format!("{}\nmodel = {making}\n", self.source);
        let mut model = self.loaded(&source)?.model("made")?.clone();
        model.train(training);
        Ok(Object::Module(Module::new(model)))
    }

    /// Evaluates an expression of `a`, `b`, ... as TorchScript.
    fn computed(&self, expression: &str, operands: &[Object]) -> Evaluated {
        let operands: Result<Vec<Value>, Failure> = operands.iter().map(Object::value).collect();
        Ok(Object::Value(super::objects::computed(expression, &operands?)?))
    }

    fn call(&self, callee: &Json, tree: &Json) -> Evaluated {
        let source = tree.get("source").and_then(Json::as_str);
        let name = callee.get("name").and_then(Json::as_str);
        if let (Some(source), Some("torch.jit.script" | "eager")) = (source, name) {
            return self.made(source);
        }
        if let (Some(source), true) = (source, name.is_some_and(|name| !self.names.contains_key(name)))
            && name != Some("OrderedDict")
        {
            return self.made(source);
        }
        let args = self.all(&tree["args"])?;
        let kwargs: Result<Kwargs, Failure> = tree["kwargs"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.evaluate(value)?)))
            .collect();
        let kwargs = kwargs?;
        if let Some(attr) = callee.get("attr") {
            if attr == "requires_grad_"
                && let Some((module, name)) = self.tensor_of_module(&callee["of"])?
            {
                let flag = args.first().or(kwargs.first().map(|(_, flag)| flag));
                module.set_requires_grad(&name, flag.is_none_or(Object::is_true))?;
                return self.evaluate(&callee["of"]);
            }
            let of = self.evaluate(&callee["of"])?;
            return of.call_method(attr.as_str().unwrap(), &args, &kwargs);
        }
        match self.evaluate(callee)? {
            Object::Name(name) if name.contains("register_module_forward") => {
                super::calls::hook_everywhere(&name, &args, &kwargs)
            }
            Object::Name(name) if name.contains("onednn_fusion") => {
                if let Some(enabled) = args.first() {
                    self.session.enable_onednn_fusion(enabled.is_true());
                    return Ok(Object::Value(Value::None));
                }
                Ok(Object::Value(Value::Bool(self.session.onednn_fusion_enabled())))
            }
            Object::Name(name) => super::objects::helper(&name, args, kwargs),
            other => other.call(&args, &kwargs),
        }
    }

    /// Compares an object with the recorded one.
    fn agrees(&self, expected: &Json, found: &Object) -> Result<(), String> {
        let (kind, body) = expected.as_object().unwrap().iter().next().unwrap();
        let shown = || format!("{found:?}\nPyTorch: {}", expected.to_string().replace("\\n", "\n"));
        let listed = |same: bool| if same { Ok(()) } else { Err(shown()) };
        match (kind.as_str(), found) {
            ("opaque", _) => Ok(()),
            ("module", Object::Module(module)) => listed(body.as_str() == Some(module.original_name().as_str())),
            ("module", Object::Value(Value::None)) => Ok(()),
            ("graph", Object::Graph(graph)) => {
                let theirs = without_constants(&listing::list_text(&without_defaults(body.as_str().unwrap())));
                let ours = without_constants(&listing::list_graph(graph));
                match without_mangling(&ours.join("\n")) == without_mangling(&theirs.join("\n")) {
                    true => Ok(()),
                    false => Err(format!("{}\nPyTorch:\n{}", ours.join("\n"), theirs.join("\n"))),
                }
            }
            ("str", Object::DType(name)) => listed(body.as_str() == Some(format!("torch.{name}").as_str())),
            ("str", Object::Value(Value::Str(text))) => {
                let theirs = without_mangling(body.as_str().unwrap());
                match theirs == without_mangling(text) {
                    true => Ok(()),
                    false => Err(format!("{text}\nPyTorch:\n{theirs}")),
                }
            }
            ("list" | "tuple" | "dict", _) => {
                let items = body.as_array().unwrap();
                match (kind.as_str(), found.items()) {
                    ("dict", Some(found)) if found.len() == items.len() => {
                        items.iter().zip(found).try_for_each(|(e, f)| {
                            let f = f.items().ok_or_else(shown)?;
                            self.agrees(&e[0], &f[0])?;
                            self.agrees(&e[1], &f[1])
                        })
                    }
                    (_, Some(found)) if found.len() == items.len() => {
                        items.iter().zip(found).try_for_each(|(e, f)| self.agrees(e, &f))
                    }
                    _ => Err(shown()),
                }
            }
            (_, Object::Value(found)) => compare::values(&value(expected), found, OPERATOR)
                .map_err(|difference| format!("{difference}\n{}", shown())),
            _ => Err(shown()),
        }
    }
}
