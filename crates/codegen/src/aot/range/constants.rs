//! The constants of a library for ranges: those of all its plans, each stored once.
//!
//! Plans share the constants that earlier plans packed ([`PackedConstants`]). Constants that a plan computes for its sizes, such as positions, belong to no
//! tensor of the model; they are compared by their contents.

use frazil_executor::memory::{Constants, align_up};
use frazil_planner::packed::PackedConstants;
use frazil_planner::plan::{Buffer, Plan};
use frazil_runtime::memory::OutOfMemory;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// The constants of all plans, built up as plans are added.
#[derive(Default)]
pub struct SharedConstants {
    /// Constants that the next plans need not pack again.
    pub packed: PackedConstants,
    /// The distinct constants of plans, with their offsets in the library.
    pieces: Vec<Piece>,
    /// Indices of `pieces`, by the hash of their contents.
    by_hash: HashMap<u64, Vec<usize>>,
    /// Size of all pieces, in bytes.
    len: usize,
    /// The constants of each plan, with a map from the offset of each piece in the plan to its offset in the library, in bytes.
    areas: Vec<(Constants, HashMap<u64, u64>)>,
    /// The results of plans' preparations (which have no contents here), and the library's offset of the first byte.
    prepared: Vec<(Constants, u64)>,
    /// Size of all results of preparations, in bytes.
    pub prepared_bytes: usize,
    /// The constants that preparations read, and their offsets.
    sources: Vec<(Constants, usize)>,
    sources_len: usize,
}

struct Piece {
    constants: Constants,
    range: Range<usize>,
    offset: usize,
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        self.constants.bytes().get(self.range.clone()).unwrap_or_default()
    }
}

/// The places of one plan's constants in the library.
pub struct Relocation<'a> {
    shared: &'a SharedConstants,
    plan: &'a Plan,
    /// Maps the offset in the plan of each of the plan's own constants to its offset in the library, in bytes.
    own: HashMap<u64, u64>,
    /// Offset in the library of the first result of the plan's own preparation, in bytes.
    prepared: u64,
    /// Offset in the library of the first constant that the plan's own preparation reads, in bytes.
    pub sources: u64,
}

impl SharedConstants {
    /// Adds the constants of `plan`, which was made with [`SharedConstants::packed`]. Returns their places.
    ///
    /// # Errors
    /// If the system refuses memory.
    pub fn add<'a>(&'a mut self, plan: &'a Plan) -> Result<Relocation<'a>, OutOfMemory> {
        let own = self.add_pieces(plan);
        let (prepared, sources) = (self.prepared_bytes as u64, self.sources_len as u64);
        // Stands for the results of the preparation, which exist in programs that use the library only.
        let results = Constants::later(plan.preparation.bytes, |_| {})?;
        if plan.preparation.bytes > 0 {
            self.prepared.push((results.clone(), prepared));
            self.prepared_bytes += align_up(plan.preparation.bytes);
            self.sources.push((plan.preparation.sources.clone(), self.sources_len));
            self.sources_len += align_up(plan.preparation.sources.len());
        }
        self.packed.add(&plan.packed, &plan.constants, &results);
        if !own.is_empty() {
            self.areas.push((plan.constants.clone(), own.clone()));
        }
        Ok(Relocation {
            shared: self,
            plan,
            own,
            prepared,
            sources,
        })
    }

    /// Adds the constants that `plan` has packed. Returns a map from their offsets in the plan to their offsets in the library, in bytes.
    fn add_pieces(&mut self, plan: &Plan) -> HashMap<u64, u64> {
        let starts: BTreeSet<u64> = plan.packed.iter().filter_map(|(_, buffer)| start(buffer)).collect();
        let ends = starts.iter().skip(1).copied().chain([plan.constants.len() as u64]);
        let ranges: Vec<Range<usize>> = starts.iter().zip(ends).map(|(&s, e)| s as usize..e as usize).collect();
        let mut own = HashMap::new();
        for range in ranges {
            let start = range.start as u64;
            let piece = Piece {
                constants: plan.constants.clone(),
                range,
                offset: self.len,
            };
            own.insert(start, self.add_piece(piece));
        }
        own
    }

    /// Adds `piece` unless an equal one exists. Returns its offset in the library.
    fn add_piece(&mut self, piece: Piece) -> u64 {
        let mut hasher = DefaultHasher::new();
        piece.bytes().hash(&mut hasher);
        let same_hash = self.by_hash.entry(hasher.finish()).or_default();
        let equal = same_hash.iter().filter_map(|&i| self.pieces.get(i));
        if let Some(found) = equal.into_iter().find(|p| p.bytes() == piece.bytes()) {
            return found.offset as u64;
        }
        same_hash.push(self.pieces.len());
        let offset = piece.offset;
        self.len = align_up(offset + piece.range.len());
        self.pieces.push(piece);
        offset as u64
    }

    /// Returns all constants of the library, and those that its preparation reads.
    ///
    /// # Errors
    /// If the system refuses memory.
    pub fn finish(self) -> Result<(Constants, Constants), OutOfMemory> {
        let pieces = self.pieces;
        let constants = Constants::later(self.len, move |to| {
            for piece in pieces {
                copy(to, piece.offset, piece.bytes());
            }
        })?;
        let sources = self.sources;
        let sources = Constants::later(self.sources_len, move |to| {
            for (source, offset) in sources {
                copy(to, offset, source.bytes());
            }
        })?;
        Ok((constants, sources))
    }
}

/// Copies `bytes` to `to`, from byte `offset` on.
fn copy(to: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(to) = to.get_mut(offset..offset + bytes.len()) {
        to.copy_from_slice(bytes);
    }
}

/// Returns the offset in bytes of a buffer in the plan's own constants; `None` for other buffers.
fn start(buffer: &Buffer) -> Option<u64> {
    match *buffer {
        Buffer::Constant { offset } => Some(offset),
        _ => None,
    }
}

impl Relocation<'_> {
    /// Returns the place of a buffer of the plan in the library; `None` if it refers to a constant that is not known.
    pub fn place(&self, buffer: Buffer) -> Option<Buffer> {
        match buffer {
            Buffer::Constant { offset } => constant(&self.own, offset),
            Buffer::Prepared { offset } => Some(Buffer::Prepared {
                offset: self.prepared + offset,
            }),
            Buffer::Shared { index, offset } => {
                let shared = self.plan.shared.get(index as usize)?;
                if let Some((_, first)) = self.shared.prepared.iter().find(|(c, _)| c.is_same(shared)) {
                    return Some(Buffer::Prepared { offset: first + offset });
                }
                let (_, places) = self.shared.areas.iter().find(|(c, _)| c.is_same(shared))?;
                constant(places, offset)
            }
            Buffer::Input { .. } | Buffer::Output { .. } | Buffer::Workspace { .. } => Some(buffer),
        }
    }
}

/// Returns the place of the byte at `offset` of a plan's constants; `places` are those of its pieces.
fn constant(places: &HashMap<u64, u64>, offset: u64) -> Option<Buffer> {
    if let Some(&offset) = places.get(&offset) {
        return Some(Buffer::Constant { offset });
    }
    // Inside a constant.
    let (start, place) = places.iter().filter(|(start, _)| **start <= offset).max()?;
    Some(Buffer::Constant {
        offset: place + (offset - start),
    })
}
