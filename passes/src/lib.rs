//! Graph passes and the pass manager.
