//! Containers of evaluated text. They may refer to one another in circles (`self.f = self.g`), which reference counts do not free. So each thread that evaluates
//! text lists its containers, and empties those that are left at the end.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

thread_local! {
    static CONTAINERS: RefCell<Containers> = RefCell::default();
}

/// A container whose contents can change after its creation, so that it may contain itself.
pub(crate) trait Container {
    /// Drops the contents.
    fn empty(&self);
}

impl<T> Container for RefCell<Vec<T>> {
    fn empty(&self) {
        // The contents are dropped after the borrow has ended, since they may include the container.
        let contents = self.take();
        drop(contents);
    }
}

/// The containers of a thread.
#[derive(Default)]
struct Containers {
    all: Vec<Weak<dyn Container>>,
    /// The length of `all` at which dropped containers are removed.
    most: usize,
}

/// The fewest containers from which dropped ones are removed.
const FEWEST: usize = 1024;

/// Returns `contents` as a container of this thread, which is emptied when the thread's [`Circles`] is dropped.
pub(crate) fn shared<C: Container + 'static>(contents: C) -> Rc<C> {
    let container = Rc::new(contents);
    let listed: Rc<dyn Container> = Rc::<C>::clone(&container);
    CONTAINERS.with_borrow_mut(|containers| {
        if containers.all.len() >= containers.most.max(FEWEST) {
            containers.all.retain(|other| other.strong_count() > 0);
            containers.most = 2 * containers.all.len();
        }
        containers.all.push(Rc::downgrade(&listed));
    });
    container
}

/// The evaluation of text on this thread. When it is dropped, no value of the text may be in use any more: the containers that are left are emptied.
pub(crate) struct Circles {
    /// The containers of the evaluation that this one interrupts.
    outer: Containers,
}

impl Circles {
    /// Begins an evaluation.
    pub(crate) fn new() -> Circles {
        Circles {
            outer: CONTAINERS.take(),
        }
    }
}

impl Drop for Circles {
    fn drop(&mut self) {
        let left = CONTAINERS.replace(std::mem::take(&mut self.outer));
        left.all
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|container| container.empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type List = RefCell<Vec<Rc<dyn Container>>>;

    fn listed() -> usize {
        CONTAINERS.with_borrow(|containers| containers.all.len())
    }

    #[test]
    fn circles_are_freed_at_the_end() {
        let outer = Circles::new();
        let kept = shared(List::default());
        let inner = Circles::new();
        let (one, other) = (shared(List::default()), shared(List::default()));
        one.borrow_mut().push(Rc::<List>::clone(&other));
        other.borrow_mut().push(Rc::<List>::clone(&one));
        kept.borrow_mut().push(shared(List::default()));
        let weak = [Rc::downgrade(&one), Rc::downgrade(&other)];
        drop((one, other));
        assert!(weak.iter().all(|w| w.strong_count() == 1));
        drop(inner);
        assert!(weak.iter().all(|w| w.strong_count() == 0));
        // The containers of the outer evaluation keep their contents.
        assert_eq!((kept.borrow().len(), listed()), (1, 1));
        drop(outer);
        assert_eq!((kept.borrow().len(), listed()), (0, 0));
    }

    #[test]
    fn dropped_containers_are_not_listed_for_ever() {
        let _circles = Circles::new();
        for _ in 0..10 * FEWEST {
            drop(shared(List::default()));
        }
        assert!(listed() <= FEWEST);
    }
}
