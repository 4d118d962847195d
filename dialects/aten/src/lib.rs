//! The aten dialect: tensor operators, each defined once.
