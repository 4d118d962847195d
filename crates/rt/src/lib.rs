//! The tiny runtime linked into compiled libraries.
