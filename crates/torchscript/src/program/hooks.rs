//! Hooks of modules: functions that become methods of their class, and whose signatures must fit `forward`.

use std::sync::Arc;

use frazil_ir::schema::FunctionSchema;
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{FunctionId, SymbolId, TypeId, TypeKind, symbols};
use ruff_python_ast::{Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::SourceProgram;
use crate::error::{LoadError, Result};
use crate::names::Names;
use crate::source::{DefPath, SourceFile};

/// A hook that a source text registers: whether it runs before `forward`, its file, and the index of its statement in the file.
pub(super) type RegisteredHook = (bool, Arc<SourceFile>, usize);

impl SourceProgram<'_> {
    /// Defines the hooks of `class`, whose type is `ty`, as its methods. Their first argument is the module.
    pub(super) fn define_hooks(&mut self, class: SymbolId, ty: TypeId, hooks: Vec<RegisteredHook>) -> Result<()> {
        let (before, after): (Vec<_>, Vec<_>) = hooks.into_iter().partition(|(is_before, ..)| *is_before);
        let mut defined: Vec<(FunctionId, Arc<SourceFile>, usize)> = Vec::new();
        for (is_before, file, statement) in after.into_iter().chain(before) {
            let Some(Stmt::FunctionDef(def)) = file.statement(statement) else {
                continue;
            };
            let path = DefPath {
                statement,
                method: None,
            };
            let hook = self.definitions.ctx.symbol(&def.name);
            let id = match self.definitions.unit.method(class, hook) {
                None => {
                    let full =
                        self.definitions
                            .ctx
                            .symbol(&format!("{}.{}", self.definitions.ctx.name(class), def.name));
                    let id = self.define_function(&file, def, path, full, Some(ty))?;
                    defined.push((id, Arc::clone(&file), statement));
                    id
                }
                Some(id) => match defined.iter().find(|(other, ..)| *other == id) {
                    None => return Err(self.hook_collision(class, &file, def)),
                    Some((_, other, number)) if !Arc::ptr_eq(other, &file) || *number != statement => {
                        let message = format!(
                            "{} '{}' on {} has at least two different python definitions. Please use unique names for all hooks.",
                            if is_before { "Pre-hook" } else { "Hook" },
                            def.name,
                            self.simple_name(class),
                        );
                        return Err(file.error("hook", message, &def.name).into());
                    }
                    Some(_) => id,
                },
            };
            if let Some(class) = self.definitions.unit.classes.get_mut(&class) {
                class.methods.insert(hook, id);
                match is_before {
                    true => class.forward_pre_hooks.push(hook),
                    false => class.forward_hooks.push(hook),
                }
            }
        }
        Ok(())
    }

    /// Returns the error for hook `id` of `class` that has the name of a method.
    pub(super) fn hook_collides(&self, class: SymbolId, id: FunctionId) -> LoadError {
        match self
            .definitions
            .bodies
            .get(&id)
            .and_then(|body| Some((&body.file, body.path.def(&body.file)?)))
        {
            Some((file, def)) => self.hook_collision(class, file, def),
            None => LoadError::Thread(std::io::Error::other("a hook has no definition")),
        }
    }

    fn hook_collision(&self, class: SymbolId, file: &SourceFile, def: &StmtFunctionDef) -> LoadError {
        let message = format!(
            "Can't define hook: {} on class: {} because a method or hook with that name already exists.",
            def.name,
            self.definitions.ctx.name(class)
        );
        file.error("hook", message, &def.name).into()
    }

    /// Returns the unqualified name of the class.
    fn simple_name(&self, class: SymbolId) -> &str {
        let name = self.definitions.ctx.name(class);
        name.rsplit('.').next().unwrap_or(name)
    }

    /// Checks the hooks of all classes that are defined so far and have not been checked.
    pub(super) fn check_hooks(&mut self) -> Result<()> {
        let classes: Vec<SymbolId> = self
            .definitions
            .unit
            .classes
            .keys()
            .skip(self.hooks_checked)
            .copied()
            .collect();
        self.hooks_checked += classes.len();
        for class in classes {
            let Some(definition) = self.definitions.unit.class(class) else {
                continue;
            };
            let (before, after) = (definition.forward_pre_hooks.clone(), definition.forward_hooks.clone());
            if before.is_empty() && after.is_empty() {
                continue;
            }
            self.check_hooks_of(class, &before, &after)?;
        }
        Ok(())
    }

    fn check_hooks_of(&mut self, class: SymbolId, before: &[SymbolId], after: &[SymbolId]) -> Result<()> {
        let all = before
            .iter()
            .map(|&hook| (hook, true))
            .chain(after.iter().map(|&hook| (hook, false)));
        // What `forward` gives, then each hook after it.
        let mut output = None;
        let mut forward = None;
        for (hook, is_before) in all {
            let Some(id) = self.definitions.unit.method(class, hook) else {
                continue;
            };
            let Some(body) = self.definitions.bodies.get(&id) else {
                continue;
            };
            let (file, path, declared) = (Arc::clone(&body.file), body.path, body.declared);
            let Some(def) = path.def(&file) else { continue };
            if forward.is_none() {
                let Some(called) = self.definitions.unit.method(class, symbols::FORWARD) else {
                    let message = format!(
                        "Couldn't find method: 'forward' on class: '{}'",
                        self.definitions.ctx.name(class)
                    );
                    return Err(file.error("hook", message, &def.name).into());
                };
                let schema = self.schema_of(called, &file, def.name.range())?;
                output = schema.returns.first().map(|returned| returned.ty);
                forward = Some(schema);
            }
            let (Some(forward), Some(given)) = (&forward, output) else {
                continue;
            };
            let schema = self.definitions.unit.function(id).schema.clone();
            let check = HookCheck {
                program: self,
                hook: &schema,
                forward,
                name: def.name.as_str(),
                class: self.simple_name(class),
                output: given,
                declared,
            };
            let checked = if is_before { check.before() } else { check.after() };
            checked.map_err(|message| file.error("hook", message, &def.name))?;
            if !is_before {
                output = self
                    .schema_of(id, &file, def.name.range())?
                    .returns
                    .first()
                    .map(|returned| returned.ty);
            }
        }
        Ok(())
    }
}

/// A hook, with the types that its signature must have. Error messages are those of PyTorch's `ClassType::checkForwardHookSchema`.
struct HookCheck<'a> {
    program: &'a SourceProgram<'a>,
    hook: &'a FunctionSchema,
    forward: &'a FunctionSchema,
    name: &'a str,
    class: &'a str,
    /// The type that the hook receives as result: of `forward`, or of the preceding hook.
    output: TypeId,
    /// Whether the hook has an annotated return type.
    declared: bool,
}

impl HookCheck<'_> {
    fn show(&self, ty: TypeId) -> String {
        display_type(&self.program.definitions.ctx, ty, TypeStyle::Annotation).to_string()
    }

    /// Returns the types of the parameters of `forward`, without `self`.
    fn inputs(&self) -> Vec<TypeId> {
        self.forward
            .arguments
            .iter()
            .skip(1)
            .map(|argument| argument.ty)
            .collect()
    }

    fn input_types(&self) -> String {
        match self.inputs().as_slice() {
            [] => "()".to_owned(),
            types => types.iter().map(|&ty| self.show(ty)).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns the element types of a tuple type; `None` for other types.
    fn elements(&self, ty: TypeId) -> Option<Vec<TypeId>> {
        match self.program.definitions.ctx.type_kind(ty) {
            TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements) => {
                Some(self.program.definitions.ctx.types(elements).to_vec())
            }
            _ => None,
        }
    }

    fn before(&self) -> Result<(), String> {
        let HookCheck { name, class, .. } = self;
        let (id, inputs, types) = (
            format!("Pre-hook '{name}' on module '{class}' "),
            self.inputs(),
            self.input_types(),
        );
        let single = match inputs.as_slice() {
            [one] if self.elements(*one).is_none() => format!(", '{}',", self.show(*one)),
            _ => String::new(),
        };
        let help = format!(
            "This error occurred while scripting the forward pre-hook '{name}' on module '{class}'. If you did not want to script this pre-hook remove it from the \
             original NN module before scripting. Pre-hooks for module '{class}' are expected to have the following signature: {name}(self, input: Tuple[{types}]) \
             with a return type of either 'None'{single} or 'Tuple[{types}]'."
        );
        self.count(2, &id, &help)?;
        self.input(&id, &help)?;
        let Some(returned) = self
            .hook
            .returns
            .first()
            .map(|returned| returned.ty)
            .filter(|_| self.declared)
        else {
            return Err(format!(
                "{id}is missing a return annotation. Return annotations are required, please add one.\n{help}"
            ));
        };
        let wrong = format!("{id}returned the wrong type of: '{}'.", self.show(returned));
        if self.program.definitions.ctx.type_kind(returned) == TypeKind::None {
            return Ok(());
        }
        let elements = self.elements(returned);
        match (inputs.as_slice(), &elements) {
            ([one], None) if *one == returned => Ok(()),
            ([one], Some(_)) if *one == returned => Err(format!(
                "{wrong} When forward has a single tuple input argument, the return needs to be 'None' or a nested tuple containing forward's input \
                 tuple argument as in: 'Tuple[{}]'.\n{help}",
                self.show(*one)
            )),
            (_, None) => Err(format!("{wrong}{help}")),
            ([], Some(given)) if !given.is_empty() => Err(format!(
                "{wrong} Was expecting either 'None' or 'Tuple[()]' since forward had no arguments.\n{help}"
            )),
            (_, Some(given)) if given.len() != inputs.len() => Err(format!(
                "{wrong} The returned tuple contains the wrong number of contained types.\n{help}"
            )),
            (_, Some(given)) if *given != inputs => Err(format!(
                "{wrong} The returned tuple contains the wrong inner types.\n{help}"
            )),
            _ => Ok(()),
        }
    }

    fn after(&self) -> Result<(), String> {
        let HookCheck { name, class, .. } = self;
        let (id, types, output) = (
            format!("Hook '{name}' on module '{class}' "),
            self.input_types(),
            self.show(self.output),
        );
        let help = format!(
            "This error occurred while scripting the forward hook '{name}' on module {class}. If you did not want to script this hook remove it from the original \
             NN module before scripting. This hook was expected to have the following signature: {name}(self, input: Tuple[{types}], output: {output}). The type of \
             the output arg is the returned type from either the forward method or the previous hook if it exists. Note that hooks can return anything, but if the \
             hook is on a submodule the outer module is expecting the same return type as the submodule's forward."
        );
        self.count(3, &id, &help)?;
        self.input(&id, &help)?;
        match self.hook.arguments.get(2) {
            Some(argument) if argument.ty != self.output => Err(format!(
                "{id}has the wrong type for the output argument. Received type: '{}'. Expected type: '{output}'.\n{help}",
                self.show(argument.ty)
            )),
            _ => Ok(()),
        }
    }

    fn count(&self, expected: usize, id: &str, help: &str) -> Result<(), String> {
        match self.hook.arguments.len() {
            count if count == expected => Ok(()),
            count => Err(format!(
                "{id}was expected to only have exactly {expected} inputs but it had {count} inputs. {help}"
            )),
        }
    }

    /// Checks that the second parameter of a hook is a tuple of the arguments of `forward`.
    fn input(&self, id: &str, help: &str) -> Result<(), String> {
        let Some(argument) = self.hook.arguments.get(1) else {
            return Ok(());
        };
        let (received, inputs) = (self.show(argument.ty), self.inputs());
        match self.elements(argument.ty) {
            None => Err(format!(
                "{id}expected the input argument to be typed as a Tuple but found type: '{received}' instead.\n{help}"
            )),
            Some(types) if inputs.is_empty() && !types.is_empty() => Err(format!(
                "{id}was expecting Tuple[()] as the input type. Received type: '{received}'.\n{help}"
            )),
            Some(types) if types.len() != inputs.len() => Err(format!(
                "{id}has the wrong number of contained types for the input argument's Tuple. Received type: '{received}'.\n{help}"
            )),
            Some(types) if types != inputs => Err(format!(
                "{id}has the wrong inner types for the input tuple argument. Received type: '{received}'.\n{help}"
            )),
            Some(_) => Ok(()),
        }
    }
}
