//! Steps that convert and switch modules and submodules.

use super::module::{Arguments, Module};
use super::objects::{Failure, Kwargs, Object, Outcome};
use super::steps::applied;
use frazil::ir::{DType, Device};
use frazil::{Conversion, Error, MemoryFormat, ScriptModuleMut, ToEmpty, Value, parse_device, tensor_type};

/// Returns the device in an argument; `None` for None.
pub fn device(object: &Object) -> Result<Option<Device>, Failure> {
    match object {
        Object::Value(Value::None) => Ok(None),
        Object::Value(Value::Device(device)) => Ok(Some(*device)),
        Object::Value(Value::Str(text)) => Ok(Some(parse_device(text)?)),
        other => Err(Failure::lacks(&format!("{other:?} as a device"))),
    }
}

fn dtype(object: &Object) -> Result<Option<DType>, Failure> {
    match object {
        Object::Value(Value::None) => Ok(None),
        other => match other.dtype() {
            Some(dtype) => Ok(Some(dtype)),
            None => Err(Failure::lacks(&format!("{other:?} as a dtype"))),
        },
    }
}

/// Returns the arguments of `to`, in one of its three signatures.
fn conversion(args: &[Object], kwargs: &Kwargs) -> Result<Conversion, Failure> {
    let named = |wanted: &str| kwargs.iter().any(|(name, _)| name == wanted);
    let forms: [&[&str]; 3] = [
        &["tensor", "non_blocking", "copy", "memory_format"],
        &["dtype", "non_blocking", "copy", "memory_format"],
        &["device", "dtype", "non_blocking", "copy", "memory_format"],
    ];
    let form = match args.first() {
        Some(Object::Value(Value::Tensor(_))) => 0,
        Some(Object::DType(_)) => 1,
        None if named("tensor") => 0,
        _ => 2,
    };
    let known = forms[form];
    if args.len() >= known.len() {
        return Err(Failure::lacks("a memory format by position"));
    }
    let arguments = Arguments::of("to", args, kwargs, known)?;
    let at = |name: &str| known.iter().position(|known| *known == name).unwrap_or(usize::MAX);
    let mut out = match form {
        0 => Conversion::from(&arguments.tensor(0, "tensor")?),
        _ => Conversion::default(),
    };
    if let Some(object) = arguments.get(at("device"), "device").filter(|_| form == 2) {
        out.device = device(object)?;
    }
    if let Some(object) = arguments.get(at("dtype"), "dtype").filter(|_| form != 0) {
        out.dtype = dtype(object)?;
    }
    out.non_blocking = arguments.flag(at("non_blocking"), "non_blocking", false)?;
    out.copy = arguments.get(at("copy"), "copy").is_some();
    out.memory_format = match kwargs.iter().find(|(name, _)| name == "memory_format") {
        None | Some((_, Object::Value(Value::None))) => None,
        Some((_, Object::MemoryFormat(name))) => MemoryFormat::from_python_name(name),
        Some((_, other)) => return Err(Failure::lacks(&format!("{other:?} as a memory format"))),
    };
    Ok(out)
}

impl Module {
    /// Modifies the part of the module that this object is.
    pub fn change_part<R>(
        &self,
        change: impl FnOnce(&mut ScriptModuleMut<'_>) -> frazil::Result<R>,
    ) -> Result<R, Failure> {
        let mut model = self.model()?;
        let result = change(&mut model.submodule_mut(self.path())?)?;
        self.becomes(model);
        Ok(result)
    }

    /// Calls methods that convert the module or submodule, or switch its mode, and return it.
    pub fn converted(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
        let known: &[&str] = match name {
            "to" => return Some(self.to(args, kwargs)),
            "train" => &["mode"],
            "type" => &["dst_type"],
            "to_empty" => &["device", "recurse"],
            "requires_grad_" => &["requires_grad"],
            "zero_grad" => &["set_to_none"],
            "apply" => &["fn"],
            "eval" | "half" | "bfloat16" | "float" | "double" | "cpu" | "share_memory" => &[],
            _ => return None,
        };
        let run = || {
            let arguments = Arguments::of(name, args, kwargs, known)?;
            self.conversion(name, &arguments)
        };
        Some(run())
    }

    fn to(&self, args: &[Object], kwargs: &Kwargs) -> Outcome {
        let target = conversion(args, kwargs)?;
        self.change_part(|m| m.to(target))?;
        Ok(Object::Module(self.clone()))
    }

    fn conversion(&self, name: &str, arguments: &Arguments<'_>) -> Outcome {
        match name {
            "train" | "eval" => {
                let mode = name == "train" && arguments.flag(0, "mode", true)?;
                self.change_part(|m| {
                    m.train(mode);
                    Ok(())
                })?;
            }
            "half" => self.change_part(|m| m.half())?,
            "bfloat16" => self.change_part(|m| m.bfloat16())?,
            "float" => self.change_part(|m| m.float())?,
            "double" => self.change_part(|m| m.double())?,
            "cpu" => self.change_part(|m| m.to(Device::CPU))?,
            "type" => {
                let target = arguments.get(0, "dst_type").ok_or_else(|| Failure::lacks("dst_type"))?;
                let dtype = match target {
                    Object::Value(Value::Str(name)) => tensor_type(name)?,
                    // `torch.DoubleTensor`
                    Object::Name(name) => tensor_type(name)?,
                    other => dtype(other)?.ok_or_else(|| Failure::lacks("`type` without a dtype"))?,
                };
                self.change_part(|m| m.to_type(dtype))?;
            }
            "to_empty" => {
                let Some(target) = arguments.get(usize::MAX, "device") else {
                    return Err(Failure::lacks("`to_empty` without 'device'"));
                };
                let target = ToEmpty {
                    device: device(target)?,
                    recurse: arguments.flag(usize::MAX, "recurse", true)?,
                };
                self.change_part(|m| m.to_empty(target))?;
            }
            "requires_grad_" => {
                let flag = arguments.flag(0, "requires_grad", true)?;
                self.change_part(|m| m.requires_grad_(flag))?;
            }
            "apply" => self.applies(arguments.get(0, "fn"))?,
            "share_memory" => self.model()?.share_memory(),
            _ => {
                self.model()?.zero_grad();
                return Ok(Object::Value(Value::None));
            }
        }
        Ok(Object::Module(self.clone()))
    }

    fn applies(&self, function: Option<&Object>) -> Result<(), Failure> {
        let Some(Object::Function(lambda)) = function else {
            return Err(Failure::lacks("`apply` without a function"));
        };
        self.change_part(|part| {
            part.apply(|model, path| {
                let module = Module::new(model.clone());
                let outcome = applied(lambda, vec![module.part(path.to_owned(), None)]);
                let changed = outcome.and_then(|_| module.model());
                *model = changed.map_err(|failure| Error::Other(failure.to_string().into()))?;
                Ok(())
            })
        })
    }
}
