//! Append-only arenas and interners for immutable compiler data.
