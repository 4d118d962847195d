//! Shared parts of the command-line tools.
