//! Setters for structures of options, which may get more fields in later versions.

/// Defines a method for each field of a structure of options. It returns the options with a new value of the field.
macro_rules! setters {
    ($options:ident { $($field:ident: $ty:ty,)* }) => {
        impl $options {$(
            #[doc = concat!("The options with this [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
            ///
            #[doc = concat!("See [`", stringify!($options), "`] for an example.")]
            #[must_use]
            pub fn $field(mut self, $field: $ty) -> Self {
                self.$field = $field;
                self
            }
        )*}
    };
}

pub(crate) use setters;
