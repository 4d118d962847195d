//! AMD Zen 5.
//!
//! Nothing is measured on it: ports and caches are documented by AMD, other values are inherited from Sapphire Rapids, whose vector unit has the same ports.

use super::machine::{Caches, Machine, PartitionParameters};
use super::sapphire_rapids::PARAMETERS;

/// AMD Zen 5 with its full vector unit. Mobile versions, which have half of it, have the same name in LLVM.
pub static ZEN5: Machine = Machine {
    name: "Zen 5",
    cpus: &["znver5"],
    // Documented by AMD; L3 of a core complex. Two multiply-adds and two loads of 512 bits start in a cycle, as on Sapphire Rapids.
    caches: Caches {
        line: 64,
        l1d: 48 << 10,
        l2: 1 << 20,
        l3: 32 << 20,
    },
    partition: PartitionParameters {
        // The same half of L2 as on Sapphire Rapids. Not measured.
        resident_bytes: 512 << 10,
        ..PARAMETERS.partition
    },
    // Inherited: the rest.
    ..PARAMETERS
};
