//! Steps on state dictionaries, and their hooks.

use super::containers::{dictionary, strings, texts};
use super::module::{Arguments, Module};
use super::objects::{Failure, Kwargs, Object, Outcome};
use super::steps::{applied, held, hold};
use frazil::runtime::value::DictValue;
use frazil::{Error, LoadStateDictOptions, Result as Done, StateDict, StateDictOptions, StateHookId, Value};

pub fn state_of(dict: &Object) -> Result<StateDict, Failure> {
    let mut state = StateDict::new();
    for pair in dict.items().unwrap_or_default() {
        let pair = pair.items().unwrap_or_default();
        let tensor = pair[1].value()?.as_tensor();
        state.insert(
            pair[0].text()?,
            tensor.ok_or_else(|| Failure::lacks("state without tensors"))?,
        );
    }
    Ok(state)
}

fn shared(state: &StateDict) -> DictValue {
    dictionary(state.iter().map(|(name, t)| (name.clone(), t.clone().into())))
}

/// Converts a dictionary back after a hook changed it.
fn changed(dict: DictValue) -> Done<StateDict> {
    state_of(&Object::Value(Value::Dict(dict))).map_err(raised)
}

fn raised(failure: Failure) -> Error {
    Error::Other(failure.to_string().into())
}

impl Module {
    /// Calls methods for state dictionaries.
    pub fn stateful(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
        let run =
            |known: &[&str], act: &dyn Fn(&Arguments<'_>) -> Outcome| act(&Arguments::of(name, args, kwargs, known)?);
        Some(match name {
            "state_dict" => run(&["destination", "prefix", "keep_vars"], &|arguments| {
                self.collects(arguments)
            }),
            "load_state_dict" => run(&["state_dict", "strict", "assign"], &|arguments| self.loads(arguments)),
            "register_state_dict_pre_hook"
            | "register_state_dict_post_hook"
            | "register_load_state_dict_pre_hook"
            | "register_load_state_dict_post_hook" => run(&["hook"], &|arguments| self.registers(name, arguments)),
            _ => return None,
        })
    }

    fn collects(&self, arguments: &Arguments<'_>) -> Outcome {
        let destination = match arguments.get(0, "destination") {
            None | Some(Object::Value(Value::None)) => dictionary([]),
            Some(Object::Value(Value::Dict(dict))) => dict.clone(),
            Some(_) => return Err(Failure::lacks("a destination that is no dictionary")),
        };
        let options = StateDictOptions::default()
            .prefix(match arguments.get(1, "prefix") {
                None => String::new(),
                Some(prefix) => prefix.text()?,
            })
            .keep_vars(arguments.flag(2, "keep_vars", false)?);
        let destination = Object::Value(Value::Dict(destination));
        let mut state = state_of(&destination)?;
        let model = self.model()?;
        let module = model.root().get_submodule(self.path())?;
        module.state_dict_into(&mut state, &options)?;
        if let Object::Value(Value::Dict(dict)) = &destination {
            let entries = shared(&state).with(Clone::clone);
            dict.change(|all| *all = entries);
        }
        Ok(destination)
    }

    fn loads(&self, arguments: &Arguments<'_>) -> Outcome {
        let given = arguments.get(0, "state_dict");
        let Some(dict @ (Object::Dict(_) | Object::Value(Value::Dict(_)))) = given else {
            return Err(Failure::lacks("state that is no dictionary"));
        };
        let state = state_of(dict)?;
        let options = LoadStateDictOptions::default()
            .strict(arguments.flag(1, "strict", true)?)
            .assign(arguments.flag(2, "assign", false)?);
        let keys = self.change_part(|m| m.load_state_dict_with(&state, &options))?;
        let list = |names: &[String]| Object::Value(Value::List(strings(names)));
        Ok(Object::Tuple(vec![
            list(&keys.missing_keys),
            list(&keys.unexpected_keys),
        ]))
    }

    fn registers(&self, name: &str, arguments: &Arguments<'_>) -> Outcome {
        let Some(Object::Function(lambda)) = arguments.get(0, "hook").cloned() else {
            return Err(Failure::lacks("hooks that are no functions"));
        };
        let this = hold(Object::Module(self.clone()));
        let meta = || Object::Value(Value::Dict(dictionary([("version".to_owned(), Value::Int(1))])));
        let run = move |args: Vec<Object>| {
            let all = std::iter::once(held(this)).chain(args).collect();
            applied(&lambda, all).map(drop).map_err(raised)
        };
        let bool = |flag| Object::Value(Value::Bool(flag));
        let id: StateHookId = self.change_part(|m| {
            Ok(match name {
                "register_state_dict_pre_hook" => m.register_state_dict_pre_hook(move |_, options| {
                    run(vec![Object::str(&options.prefix), bool(options.keep_vars)])
                }),
                "register_state_dict_post_hook" => m.register_state_dict_post_hook(move |_, state, options| {
                    let dict = shared(state);
                    let given = Object::Value(Value::Dict(dict.clone()));
                    run(vec![given, Object::str(&options.prefix), meta()])?;
                    *state = changed(dict)?;
                    Ok(())
                }),
                "register_load_state_dict_pre_hook" => m.register_load_state_dict_pre_hook(move |_, loading| {
                    let dict = shared(loading.state);
                    let lists = [
                        strings(&loading.keys.missing_keys),
                        strings(&loading.keys.unexpected_keys),
                        strings(loading.error_msgs),
                    ];
                    let mut args = vec![
                        Object::Value(Value::Dict(dict.clone())),
                        Object::str(loading.prefix),
                        meta(),
                        bool(true),
                    ];
                    args.extend(lists.iter().map(|list| Object::Value(Value::List(list.clone()))));
                    run(args)?;
                    *loading.state = changed(dict)?;
                    loading.keys.missing_keys = texts(&lists[0]);
                    loading.keys.unexpected_keys = texts(&lists[1]);
                    *loading.error_msgs = texts(&lists[2]);
                    Ok(())
                }),
                _ => m.register_load_state_dict_post_hook(move |_, keys| {
                    let lists = [strings(&keys.missing_keys), strings(&keys.unexpected_keys)];
                    let given = lists.iter().map(|list| Object::Value(Value::List(list.clone())));
                    run(vec![Object::Tuple(given.collect())])?;
                    keys.missing_keys = texts(&lists[0]);
                    keys.unexpected_keys = texts(&lists[1]);
                    Ok(())
                }),
            })
        })?;
        Ok(Object::StateHandle(self.clone(), id))
    }

    /// Calls `module.name.requires_grad_(flag)`.
    pub fn set_requires_grad(&self, name: &str, flag: bool) -> Result<(), Failure> {
        let mut model = self.model()?;
        let path = match self.path() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        model.set_requires_grad(&path, flag)?;
        self.becomes(model);
        Ok(())
    }

    pub fn remove_state_hook(&self, hook: StateHookId) -> Result<(), Failure> {
        let mut model = self.model()?;
        model.remove_state_hook(hook);
        self.becomes(model);
        Ok(())
    }
}
