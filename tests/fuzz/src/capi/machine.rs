//! The handles that a sequence of calls has made, and the choices for the next call.

use super::super::choices::Choices;
use super::arguments::{Handle, KINDS};
use frazil_capi::*;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use tempfile::TempDir;

/// Most handles of a kind; the oldest is freed for another one.
const MOST: usize = 12;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("temporary files can be made"));

/// Programs that models are made of.
pub const PROGRAMS: [&str; 4] = [
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 3)\n        self.n = 3\n        self.register_buffer('b', torch.ones(3))\n\n    def forward(self, x, k: int = 2):\n        return self.fc(x) * k + self.b\n",
    "def f(x, y: List[int], z: Optional[str] = None):\n    d: Dict[str, Tensor] = {}\n    for i in y:\n        d[str(i)] = x + i\n    if z is not None:\n        raise ValueError(z)\n    return d, y, (x, 1.5)\n",
    "graph(%x : Tensor, %n : int):\n  %y : Tensor = aten::relu(%x)\n  %c : int = prim::Constant[value=1]()\n  %z : Tensor = aten::add_(%y, %x, %c)\n  return (%z, %n)\n",
    "class E(Enum):\n    A = 1\n    B = 2\n\n@torch.jit.script\nclass P:\n    def __init__(self, n: int):\n        self.n = n\n\n    def get(self) -> int:\n        return self.n\n\ndef g(n: int):\n    return P(n), E.A\n",
];

/// Inputs that share a session: registering all operators takes longer than most calls.
const INPUTS: u32 = 50;

/// A session that several inputs use, and how many have.
struct Shared {
    session: Box<FrazilSession>,
    uses: u32,
}

thread_local! {
    static SESSION: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

fn new_session() -> Box<FrazilSession> {
    let mut session = MaybeUninit::new(None);
    assert!(
        frazil_session_new(Some(&mut session)).is_none(),
        "a session can be made"
    );
    // SAFETY: written at once.
    unsafe { session.assume_init() }.expect("without an error there is a result")
}

/// What calls are made with.
pub struct Machine<'a> {
    pub choices: Choices<'a>,
    /// The session that no call frees.
    session: Shared,
    /// Handles by kind.
    pools: [Vec<*mut c_void>; KINDS],
    /// Elements of the arrays of the present call.
    pub len: usize,
    /// Bytes that a tensor has whose type and sizes have been chosen for the present call, and bytes that its data has.
    pub dtype_bytes: usize,
    pub elements: usize,
    pub data_len: usize,
    /// Functions that have to be called to release a context, less those that were: their context.
    pub unreleased: Box<AtomicIsize>,
}

impl<'a> Machine<'a> {
    /// A session, options for the interpreter, and a model of one of the programs.
    pub fn new(choices: Choices<'a>) -> Machine<'a> {
        let kept = SESSION.take().filter(|shared| shared.uses < INPUTS);
        let session = kept.unwrap_or_else(|| Shared {
            session: new_session(),
            uses: 0,
        });
        let mut machine = Machine {
            choices,
            session,
            pools: Default::default(),
            len: 0,
            dtype_bytes: 0,
            elements: 0,
            data_len: 0,
            unreleased: Box::default(),
        };
        let mut options = frazil_options_new();
        assert!(
            frazil_options_set_interpret(Some(&mut options), true).is_none(),
            "an option can be set"
        );
        let which = machine.choices.below(PROGRAMS.len());
        let (name, text) = ([c"m.py", c"m.py", c"m.ir", c"m.py"][which], PROGRAMS[which]);
        let mut model = MaybeUninit::new(None);
        // SAFETY: a text and bytes.
        let error = unsafe {
            frazil_model_load_bytes(
                Some(&machine.session.session),
                name.as_ptr(),
                text.as_ptr(),
                text.len(),
                Some(&mut model),
            )
        };
        if let Some(error) = error {
            panic!("a program is refused: {error}");
        }
        // SAFETY: written at once.
        let model = unsafe { model.assume_init() }.expect("without an error there is a result");
        machine.add(Box::into_raw(options));
        machine.add(Box::into_raw(model));
        machine
    }

    /// Before the arguments of a call are chosen.
    pub fn begin(&mut self) {
        self.len = self.choices.below(4);
        (self.dtype_bytes, self.elements, self.data_len) = (1, 1, 0);
    }

    /// Keeps a handle.
    pub fn add<T: Handle>(&mut self, handle: *mut T) {
        T::look_at(handle);
        let pool = &mut self.pools[T::KIND];
        pool.push(handle.cast());
        if pool.len() > MOST {
            let oldest = pool.remove(0);
            // SAFETY: a handle of this kind that is kept nowhere else.
            unsafe { T::free(oldest.cast()) };
        }
    }

    /// A handle, mostly the last one; NULL where there is none, and now and then where there is.
    pub fn handle<T: Handle>(&mut self) -> *mut T {
        let back = self.choices.byte();
        let pool = &self.pools[T::KIND];
        match back {
            255 => null_mut(),
            _ if pool.is_empty() && T::KIND == FrazilSession::KIND => (&raw mut *self.session.session).cast(),
            _ if pool.is_empty() => null_mut(),
            0..128 => pool[pool.len() - 1].cast(),
            _ => pool[usize::from(back) % pool.len()].cast(),
        }
    }

    /// Takes a handle out of its pool, to be freed.
    pub fn take<T: Handle>(&mut self) -> *mut T {
        let handle = self.handle::<T>();
        let pool = &mut self.pools[T::KIND];
        match pool.iter().position(|h| *h == handle.cast()) {
            Some(at) => pool.remove(at).cast(),
            None => null_mut(),
        }
    }

    /// A file in a folder of this process.
    pub fn path(&mut self) -> PathBuf {
        let name = *self.choices.pick(&[
            "a.pt",
            "b.ir",
            "c.safetensors",
            "d.py",
            "folder",
            "folder/e.pt",
            "cache",
        ]);
        FOLDER.path().join(name)
    }

    /// Frees all handles.
    pub fn finish(mut self) {
        let free = super::arguments::free_functions();
        let backward = self.choices.below(2) == 1;
        for turn in 0..KINDS {
            let kind = if backward { KINDS - 1 - turn } else { turn };
            for handle in std::mem::take(&mut self.pools[kind]) {
                // SAFETY: a handle of this kind that is kept nowhere else.
                unsafe { free[kind](handle) };
            }
        }
        self.session.uses += 1;
        SESSION.set(Some(self.session));
        assert_eq!(
            self.unreleased.load(Relaxed),
            0,
            "contexts that are not released, or released twice"
        );
    }
}
