//! Pooled operand lists whose slots are the links of intrusive use lists.
//!
//! All operands of a graph are stored in one vector. A node's list is a run of slots: a header (length and owner), then the operands. The number of slots in a
//! run is a power of two; a list that outgrows its run moves to the next size, and freed runs are kept by size. An operand's index is the distance of its slot
//! from the header, so the slot's number identifies a use.

use super::{NodeId, ValueData, ValueId};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};

/// Index of a slot in [`OperandPool`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct OperandId(u32);
entity_impl!(OperandId, "operand");

/// A node's operands: the number of the header's slot; `None` for a list that never had an element.
pub(super) type OperandList = PackedOption<OperandId>;

/// One operand of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The using node.
    pub user: NodeId,
    /// Index of the operand.
    pub index: usize,
}

/// A header has the owner in `list` and its length in `value`; an operand has its header in `list`.
#[derive(Clone, Copy, Debug)]
struct Slot {
    value: u32,
    list: u32,
    /// The previous use in the value's use list.
    previous: PackedOption<OperandId>,
    next: PackedOption<OperandId>,
}

#[cfg(test)]
pub(super) const SLOT_SIZE: usize = size_of::<Slot>();

#[derive(Clone, Debug, Default)]
pub(super) struct OperandPool {
    slots: Vec<Slot>,
    /// Free lists: `free[n]` has the starts of unused runs of 2^n slots.
    free: [Vec<OperandId>; 32],
}

type Values = PrimaryMap<ValueId, ValueData>;

impl OperandPool {
    /// Returns an empty pool with room for the operands of `nodes` nodes with up to three operands each.
    pub(super) fn with_capacity(nodes: usize) -> OperandPool {
        OperandPool {
            slots: Vec::with_capacity(4 * nodes),
            ..OperandPool::default()
        }
    }

    fn slot(&self, id: OperandId) -> &Slot {
        &self.slots[id.index()]
    }

    fn slot_mut(&mut self, id: OperandId) -> &mut Slot {
        &mut self.slots[id.index()]
    }

    fn owner(&self, header: OperandId) -> NodeId {
        NodeId::from_u32(self.slot(header).list)
    }

    pub(super) fn len(&self, list: OperandList) -> usize {
        list.expand().map_or(0, |h| self.slot(h).value as usize)
    }

    /// Returns log2 of the number of slots for a list of `len` operands and its header.
    fn class(len: usize) -> usize {
        (len + 1).next_power_of_two().trailing_zeros() as usize
    }

    fn run(&self, list: OperandList) -> &[Slot] {
        match list.expand() {
            Some(h) => &self.slots[h.index() + 1..h.index() + 1 + self.len(list)],
            None => &[],
        }
    }

    pub(super) fn values(
        &self,
        list: OperandList,
    ) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + Clone + '_ {
        self.run(list).iter().map(|s| ValueId::from_u32(s.value))
    }

    pub(super) fn value(&self, list: OperandList, index: usize) -> Option<ValueId> {
        self.run(list).get(index).map(|s| ValueId::from_u32(s.value))
    }

    pub(super) fn uses(&self, first: PackedOption<OperandId>) -> impl Iterator<Item = Use> + Clone + '_ {
        std::iter::successors(first.expand(), |id| self.slot(*id).next.expand()).map(|id| {
            let header = OperandId(self.slot(id).list);
            Use {
                user: self.owner(header),
                index: id.index() - header.index() - 1,
            }
        })
    }

    fn allocate(&mut self, class: usize, owner: NodeId) -> OperandId {
        let header = match self.free[class].pop() {
            Some(run) => run,
            None => {
                let id = OperandId::new(self.slots.len());
                let empty = Slot {
                    value: 0,
                    list: 0,
                    previous: None.into(),
                    next: None.into(),
                };
                self.slots.resize(self.slots.len() + (1 << class), empty);
                id
            }
        };
        *self.slot_mut(header) = Slot {
            value: 0,
            list: owner.as_u32(),
            previous: None.into(),
            next: None.into(),
        };
        header
    }

    /// Reserves capacity for `len` operands; the run is moved if it is too small.
    fn reserve(&mut self, list: &mut OperandList, owner: NodeId, len: usize, values: &mut Values) -> OperandId {
        let Some(old) = list.expand() else {
            let header = self.allocate(Self::class(len), owner);
            *list = header.into();
            return header;
        };
        let old_len = self.len(*list);
        let old_class = Self::class(old_len.max(1));
        if Self::class(len) <= old_class {
            return old;
        }
        let new = self.allocate(Self::class(len), owner);
        self.slot_mut(new).value = old_len as u32;
        for i in 1..=old_len {
            let (from, to) = (OperandId::new(old.index() + i), OperandId::new(new.index() + i));
            let moved = Slot {
                list: new.as_u32(),
                ..*self.slot(from)
            };
            *self.slot_mut(to) = moved;
            match moved.previous.expand() {
                Some(p) => self.slot_mut(p).next = to.into(),
                None => values[ValueId::from_u32(moved.value)].first_use = to.into(),
            }
            if let Some(n) = moved.next.expand() {
                self.slot_mut(n).previous = to.into();
            }
        }
        self.free[old_class].push(old);
        *list = new.into();
        new
    }

    /// Writes `value` into the operand slot `id` of the list `header` and links it into the value's uses.
    fn link(&mut self, id: OperandId, header: OperandId, value: ValueId, values: &mut Values) {
        let first = values[value].first_use;
        *self.slot_mut(id) = Slot {
            value: value.as_u32(),
            list: header.as_u32(),
            previous: None.into(),
            next: first,
        };
        if let Some(f) = first.expand() {
            self.slot_mut(f).previous = id.into();
        }
        values[value].first_use = id.into();
    }

    fn unlink(&mut self, id: OperandId, values: &mut Values) {
        let slot = *self.slot(id);
        match slot.previous.expand() {
            Some(p) => self.slot_mut(p).next = slot.next,
            None => values[ValueId::from_u32(slot.value)].first_use = slot.next,
        }
        if let Some(n) = slot.next.expand() {
            self.slot_mut(n).previous = slot.previous;
        }
    }

    /// Appends `added` to the list.
    pub(super) fn extend(&mut self, list: &mut OperandList, owner: NodeId, added: &[ValueId], values: &mut Values) {
        if added.is_empty() {
            return;
        }
        let len = self.len(*list);
        let header = self.reserve(list, owner, len + added.len(), values);
        for (i, &value) in added.iter().enumerate() {
            self.link(OperandId::new(header.index() + 1 + len + i), header, value, values);
        }
        self.slot_mut(header).value = (len + added.len()) as u32;
    }

    /// Replaces operand `index`. Returns false if the list has no such operand.
    pub(super) fn set(&mut self, list: OperandList, index: usize, value: ValueId, values: &mut Values) -> bool {
        let Some(header) = list.expand().filter(|_| index < self.len(list)) else {
            return false;
        };
        let id = OperandId::new(header.index() + 1 + index);
        self.unlink(id, values);
        self.link(id, header, value, values);
        true
    }

    /// Drops the operands from `start` on. The run is kept until the list is freed, or shrinks to a smaller class.
    pub(super) fn truncate(&mut self, list: &mut OperandList, start: usize, values: &mut Values) {
        let len = self.len(*list);
        let Some(header) = list.expand().filter(|_| start < len) else {
            return;
        };
        for i in start..len {
            self.unlink(OperandId::new(header.index() + 1 + i), values);
        }
        self.slot_mut(header).value = start as u32;
        // The size class of a run is derived from its length, so slots that the shorter list does not need must be
        // freed now.
        let (old, new) = (Self::class(len), Self::class(start.max(1)));
        for class in new..old {
            self.free[class].push(OperandId::new(header.index() + (1 << class)));
        }
        if start == 0 {
            self.free[new].push(header);
            *list = None.into();
        }
    }

    /// Moves all uses of the value `from` to the value `to`.
    pub(super) fn move_uses(&mut self, from: ValueId, to: ValueId, values: &mut Values, mut each: impl FnMut(NodeId)) {
        let Some(first) = values[from].first_use.expand() else {
            return;
        };
        let mut last = first;
        loop {
            let slot = self.slot_mut(last);
            slot.value = to.as_u32();
            let header = OperandId(slot.list);
            let next = slot.next.expand();
            each(self.owner(header));
            match next {
                Some(n) => last = n,
                None => break,
            }
        }
        let old = values[to].first_use;
        self.slot_mut(last).next = old;
        if let Some(o) = old.expand() {
            self.slot_mut(o).previous = last.into();
        }
        values[to].first_use = first.into();
        values[from].first_use = None.into();
    }
}
