//! Prints the public items of a crate, one a line, from the JSON that rustdoc writes: `frazil-public-interface JSON`.
//!
//! Left out are implementations of auto traits, blanket implementations and derived ones. So are the methods of eager tensors that the facade's build script
//! writes: they return an `OpCall`, are as many as PyTorch has operators and arguments, and `docs/operators.md` lists the operators.

use std::error::Error;

/// The end of a generated method's signature.
const GENERATED: &str = "-> frazil::eager::OpCall<'a>";

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args_os().nth(1).ok_or("expected the path of rustdoc's JSON")?;
    let interface = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    let items = interface.items().map(ToString::to_string);
    let mut lines: Vec<String> = items.filter(|item| !item.ends_with(GENERATED)).collect();
    lines.sort();
    lines.dedup();
    for line in lines {
        println!("{line}");
    }
    Ok(())
}
