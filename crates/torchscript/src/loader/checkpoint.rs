//! Reading of files that `torch.save` wrote: tensors in dictionaries, without code.

use std::sync::Arc;

use frazil_ir::schema::Catalogue;
use frazil_ir::{Constant, Context, TensorData, types};

use crate::archive::{Archive, ArchiveError, Limits, Pickle, PickleId, PickleValue, SharedBytes, foreign};
use crate::error::Result;
use crate::objects::Reader;
use crate::options::LoadOptions;
use crate::program::{NoSources, SourceProgram};
use crate::source::with_stack;

/// A file that `torch.save` wrote in the zip format: a dictionary of tensors, or of such dictionaries.
///
/// As with archives, nothing in the file is executed, and only values that archives may contain are accepted.
#[derive(Debug)]
pub struct Checkpoint {
    archive: Archive,
    pickle: Pickle,
}

/// The name of the entry with the pickle, in a file that `torch.save` wrote.
const ENTRY: &str = "data.pkl";

impl Checkpoint {
    /// Opens a file.
    ///
    /// # Errors
    /// When it is of another kind, is damaged, or contains objects that only Python can create, such as a whole module.
    pub fn new(bytes: SharedBytes) -> Result<Checkpoint> {
        if let Some(head) = bytes.read(0..bytes.len().min(foreign::HEAD))
            && let Some(foreign) = foreign::of_bytes(&head)
        {
            return Err(ArchiveError::from(foreign).into());
        }
        let archive = Archive::new(bytes, Limits::default())?;
        let pickle = archive.pickle(ENTRY)?;
        Ok(Checkpoint { archive, pickle })
    }

    fn unexpected(&self, id: PickleId, expected: String) -> ArchiveError {
        ArchiveError::Unexpected {
            entry: ENTRY.to_owned(),
            offset: self.pickle.offset(id),
            expected,
            found: self.pickle.value(id).kind().to_owned(),
        }
    }

    /// Returns the dictionary that is reached by a path of nested keys.
    fn dictionary(&self, path: &[&str]) -> Result<&[(PickleId, PickleId)]> {
        let mut at = self.pickle.root();
        let entries = |at: PickleId, place: &str| match self.pickle.value(at) {
            PickleValue::Dict(entries) => Ok(entries),
            _ => Err(self.unexpected(at, format!("a dictionary of tensors{place}"))),
        };
        let mut place = String::new();
        for key in path {
            // Of equal keys the last one counts.
            let found = entries(at, &place)?
                .iter()
                .rev()
                .find(|(k, _)| self.pickle.str(*k) == Some(key));
            place += &format!(" at {key:?}");
            at = found.ok_or_else(|| self.unexpected(at, format!("an entry{place}")))?.1;
        }
        Ok(entries(at, &place)?)
    }

    /// Returns the keys of the dictionary at a path of keys, each with a description of its value: `a dictionary`, `a tensor`.
    ///
    /// # Errors
    /// When there is no dictionary.
    pub fn entries(&self, path: &[&str]) -> Result<Vec<(&str, &'static str)>> {
        let entries = self.dictionary(path)?.iter();
        Ok(entries
            .filter_map(|&(key, value)| Some((self.pickle.str(key)?, self.kind(value))))
            .collect())
    }

    fn kind(&self, id: PickleId) -> &'static str {
        match self.pickle.value(id) {
            PickleValue::Call { callee, .. }
                if self
                    .pickle
                    .global(*callee)
                    .is_some_and(|(_, name)| name.starts_with("_rebuild_")) =>
            {
                "a tensor"
            }
            value => value.kind(),
        }
    }

    /// Returns the tensors, with their names, of the dictionary at a path of keys. Tensors that share a storage in the file share it in the result.
    ///
    /// # Errors
    /// When there is no dictionary, an entry is no tensor, or a tensor is of a kind that archives cannot contain.
    pub fn tensors(&self, path: &[&str]) -> Result<Vec<(String, Arc<TensorData>)>> {
        let entries = self.dictionary(path)?;
        let ctx = Arc::new(Context::new());
        let catalogue = Catalogue::new(Arc::clone(&ctx));
        with_stack(|stack| {
            let options = LoadOptions::new(&ctx, &catalogue);
            let mut program = SourceProgram::new(&options, &NoSources, stack);
            let mut reader = Reader::new(&mut program, &self.archive, &self.pickle, ENTRY, "data");
            let mut out = Vec::with_capacity(entries.len());
            for &(key, value) in entries {
                let Some(name) = self.pickle.str(key) else {
                    return Err(self.unexpected(key, "the name of a tensor".to_owned()).into());
                };
                if self.kind(value) != "a tensor" {
                    return Err(self.unexpected(value, format!("a tensor as {name:?}")).into());
                }
                match reader.value(value, types::TENSOR, 0)? {
                    Constant::Tensor(tensor) => out.push((name.to_owned(), tensor)),
                    _ => return Err(self.unexpected(value, format!("a tensor as {name:?}")).into()),
                }
            }
            Ok(out)
        })
    }
}
