//! Reduction of a module: its methods, attributes and values.
//!
//! Only unused members are removed: a method that a graph may call is kept until the call is removed, and so is an attribute that is read or written. Objects
//! without references are kept, but emptied.

use super::graph::simpler;
use super::{Candidate, Reducer};
use frazil::ir::{AttributeValue, Constant, Graph, Module, ObjectId, SymbolId, TensorData, symbols};
use std::collections::HashSet;
use std::sync::Arc;

/// A member of a class: the names of class and member.
type Member = (SymbolId, SymbolId);

/// Bodies of methods are not changed.
impl Candidate for Module {
    fn round(reducer: &mut Reducer<'_, Module>, best: &mut Module) {
        reducer.each(best, &methods, &drop_method);
        reducer.each(best, &functions, &drop_function);
        reducer.each(best, &attributes, &drop_attribute);
        reducer.each(best, &slots, &simplify);
    }

    fn prune(&mut self) {}

    fn is_valid(&self) -> bool {
        self.unit.functions().all(|(_, f)| f.graph.verify(None).is_ok())
    }
}

/// Returns all graphs of the module, including the graphs that forks run.
fn graphs(module: &Module) -> Vec<&Graph> {
    let mut all: Vec<&Graph> = module.unit.functions().map(|(_, f)| &f.graph).collect();
    let mut next = 0;
    while let Some(&graph) = all.get(next) {
        next += 1;
        for node in graph.all_nodes() {
            for attribute in graph.attributes(node) {
                match &attribute.value {
                    AttributeValue::Graph(inner) => all.push(inner),
                    AttributeValue::Graphs(inner) => all.extend(inner.iter().map(Arc::as_ref)),
                    _ => {}
                }
            }
        }
    }
    all
}

/// Returns the names by which graphs call methods, or read and write attributes, of any class.
fn named(module: &Module) -> HashSet<SymbolId> {
    let mut names = HashSet::new();
    for graph in graphs(module) {
        for node in graph.all_nodes() {
            let names_member = matches!(
                graph.kind(node),
                symbols::PRIM_CALL_METHOD | symbols::PRIM_GET_ATTR | symbols::PRIM_SET_ATTR
            );
            names.extend(
                graph
                    .attribute_symbol(node, symbols::ATTR_NAME)
                    .filter(|_| names_member),
            );
        }
    }
    names
}

fn methods(module: &Module) -> Vec<Member> {
    let of = |class: &frazil::ir::ClassDef| class.methods.keys().map(|m| (class.name, *m)).collect::<Vec<_>>();
    module.unit.classes.values().flat_map(of).collect()
}

fn drop_method(module: &mut Module, (class, method): &Member) -> bool {
    if named(module).contains(method) {
        return false;
    }
    let Some(class) = module.unit.classes.get_mut(class) else {
        return false;
    };
    let Some(gone) = class.methods.shift_remove(method) else {
        return false;
    };
    let used = module
        .unit
        .classes
        .values()
        .any(|c| c.methods.values().any(|id| *id == gone));
    if !used {
        module.unit.retain_functions(|id| id != gone);
    }
    true
}

/// Returns the names of the functions that are not methods.
fn functions(module: &Module) -> Vec<SymbolId> {
    let methods: HashSet<_> = module.unit.classes.values().flat_map(|c| c.methods.values()).collect();
    let free = module.unit.functions().filter(|(id, _)| !methods.contains(id));
    free.map(|(_, f)| f.name).collect()
}

fn drop_function(module: &mut Module, name: &SymbolId) -> bool {
    let called = graphs(module).into_iter().any(|g| {
        let nodes = g.all_nodes();
        nodes
            .into_iter()
            .any(|n| matches!(g.constant_of(n), Some(Constant::Function(f)) if f == *name))
    });
    let Some(gone) = module.unit.find_function(*name).filter(|_| !called) else {
        return false;
    };
    module.unit.retain_functions(|id| id != gone);
    true
}

fn attributes(module: &Module) -> Vec<Member> {
    let of = |class: &frazil::ir::ClassDef| class.attributes.keys().map(|a| (class.name, *a)).collect::<Vec<_>>();
    module.unit.classes.values().flat_map(of).collect()
}

fn drop_attribute(module: &mut Module, (class, attribute): &Member) -> bool {
    if named(module).contains(attribute) {
        return false;
    }
    let Some(definition) = module.unit.classes.get_mut(class) else {
        return false;
    };
    let Some((index, ..)) = definition.attributes.shift_remove_full(attribute) else {
        return false;
    };
    for hooks in [&mut definition.forward_hooks, &mut definition.forward_pre_hooks] {
        hooks.retain(|name| name != attribute);
    }
    let objects: Vec<ObjectId> = module
        .objects()
        .filter(|(_, o)| o.class == *class)
        .map(|(id, _)| id)
        .collect();
    for id in objects {
        let slots = &mut module.object_mut(id).slots;
        if index < slots.len() {
            slots.remove(index);
        }
    }
    true
}

/// An attribute value of an object: the object, and the index of the slot.
type Slot = (ObjectId, usize);

fn slots(module: &Module) -> Vec<Slot> {
    let of = |(id, object): (ObjectId, &frazil::ir::Object)| (0..object.slots.len()).map(move |i| (id, i));
    module.objects().flat_map(of).collect()
}

/// Replaces a value by the simplest value of its type; a tensor by a tensor with one element.
fn simplify(module: &mut Module, (object, index): &Slot) -> bool {
    let Some(slot) = module.object_mut(*object).slots.get_mut(*index) else {
        return false;
    };
    let simple = match *slot {
        Constant::Tensor(ref t) => one_element(t).map(|t| Constant::Tensor(Arc::new(t))),
        ref other => simpler(other),
    };
    let found = simple.is_some();
    if let Some(simple) = simple {
        *slot = simple;
    }
    found
}

/// Returns a tensor with the dtype and rank of `tensor` and one element, zero; `None` if `tensor` already has these sizes.
fn one_element(tensor: &TensorData) -> Option<TensorData> {
    let sizes = vec![1; tensor.rank()];
    let larger = tensor.sizes.as_slice() != sizes.as_slice();
    let small = TensorData::contiguous(tensor.dtype, &sizes, vec![0; tensor.dtype.size()]).ok()?;
    larger.then_some(small)
}
