//! Integration and conformance tests.
