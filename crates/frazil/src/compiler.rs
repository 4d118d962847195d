//! How native code is made, and where its kernels are kept.

use crate::CompileOptions;
use frazil_codegen::cache::ObjectCache;
use frazil_codegen::target::Target;
use frazil_syntax::PrivateFolder;

/// Options, with the objects of kernels that compilations share. Clones share them too.
#[derive(Clone)]
pub(crate) struct Compiler {
    pub(crate) options: CompileOptions,
    objects: Option<ObjectCache>,
}

impl Compiler {
    /// One that keeps objects in the directory that `options` say.
    pub(crate) fn of(options: &CompileOptions) -> Compiler {
        let folder = options.cache_dir.as_ref().map(PrivateFolder::new);
        Compiler::keeping_in(folder, options.clone())
    }

    /// One that keeps objects in `folder`, if there is one.
    pub(crate) fn keeping_in(folder: Option<PrivateFolder>, options: CompileOptions) -> Compiler {
        Compiler {
            options,
            objects: folder.map(ObjectCache::new),
        }
    }

    /// The same for code that has the name `name`.
    pub(crate) fn named(&self, name: &str) -> Compiler {
        let mut named = self.clone();
        name.clone_into(&mut named.options.name);
        named
    }

    /// The same with `objects`, unless it has some.
    pub(crate) fn or_sharing(&self, objects: &ObjectCache) -> Compiler {
        let mut sharing = self.clone();
        sharing.objects.get_or_insert_with(|| objects.clone());
        sharing
    }

    /// The options of the code generator for `target`.
    pub(crate) fn back_end(&self, target: Target) -> frazil_codegen::CompileOptions {
        frazil_codegen::CompileOptions {
            target,
            threads: self.options.threads,
            cache: self.objects.clone(),
        }
    }
}
