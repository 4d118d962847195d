//! Writes the eager methods (`methods.rs`, which `src/eager/mod.rs` includes): one for each operator of the catalogue that takes or returns tensors, and
//! one for each named argument of such operators. Also writes the names of these operators (`names.rs`). `operators.txt` is a link to the aten dialect's
//! own list, which packaging turns into a file. With the feature `precompiled`, it also finds the code library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The information in the catalogue's lines that methods need.
struct Overload<'t> {
    line: &'t str,
    /// Type, name, and whether it may be omitted.
    arguments: Vec<(&'t str, &'t str, bool)>,
    returns: &'t str,
}

/// Operators that [`Var`] implements by hand, since a tracer handles them specially.
const BY_HAND: [&str; 2] = ["item", "size"];

/// Operators whose name means something else in Rust.
const RENAMED: [(&str, &str); 1] = [("clone", "clone_tensor")];

const KEYWORDS: [&str; 13] = [
    "as", "box", "const", "fn", "in", "loop", "match", "mod", "move", "ref", "type", "unsafe", "where",
];

/// Tells the crate the path of the code library that it includes: the value of `FRAZIL_CODES`, or what `make codes` writes.
fn find_code_library() {
    if std::env::var_os("CARGO_FEATURE_PRECOMPILED").is_none() {
        return;
    }
    println!("cargo::rerun-if-env-changed=FRAZIL_CODES");
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let path = std::env::var_os("FRAZIL_CODES").map_or_else(|| folder.join("codes.bin"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", path.display());
    println!("cargo::rustc-env=FRAZIL_CODES={}", path.display());
    if !path.is_file() {
        println!(
            "cargo::error=the feature `precompiled` needs the code library {}: run `make codes`, or set FRAZIL_CODES to the absolute path of one",
            path.display()
        );
    }
}

fn main() {
    find_code_library();
    println!("cargo::rerun-if-changed=operators.txt");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let text = std::fs::read_to_string(PathBuf::from(folder).join("operators.txt")).expect("the list of operators");
    let mut operators: BTreeMap<&str, Vec<Overload<'_>>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, overload)) = parse(line) {
            operators.entry(name).or_default().push(overload);
        }
    }
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    let (names, methods) = generated(&operators);
    for (file, text) in [("names.rs", names), ("methods.rs", methods)] {
        std::fs::write(out.join(file), text).expect("the folder for generated files");
    }
}

/// Splits `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
fn parse(line: &str) -> Option<(&str, Overload<'_>)> {
    let (head, rest) = line.trim().strip_prefix("aten::")?.split_once('(')?;
    let (arguments, returns) = rest.rsplit_once(") -> ")?;
    let name = head.split('.').next()?;
    let arguments = split(arguments)
        .filter(|a| !matches!(*a, "*" | "..."))
        .filter_map(|argument| {
            let (written, default) = match argument.split_once('=') {
                Some((written, _)) => (written, true),
                None => (argument, false),
            };
            let (ty, name) = written.rsplit_once(' ')?;
            Some((ty, name, default))
        });
    let arguments = arguments.collect();
    Some((
        name,
        Overload {
            line,
            arguments,
            returns,
        },
    ))
}

/// Returns the arguments of a list, which are separated by commas outside of parentheses and brackets.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    list.split(move |c| {
        depth += i32::from(c == '(' || c == '[') - i32::from(c == ')' || c == ']');
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|a| !a.is_empty())
}

impl Overload<'_> {
    fn is_of_tensors(&self) -> bool {
        self.returns.starts_with("Tensor")
            || self.returns.starts_with("(Tensor")
            || self.arguments.iter().any(|a| a.0.starts_with("Tensor"))
    }

    fn starts_with_tensor(&self) -> bool {
        let is_tensor = |ty: &str| ty == "Tensor" || (ty.starts_with("Tensor(") && ty.ends_with(')'));
        self.arguments.first().is_some_and(|a| is_tensor(a.0))
    }

    fn writes_out(&self) -> bool {
        self.arguments
            .iter()
            .any(|a| a.1.starts_with("out") && a.0.contains('!'))
    }
}

/// Returns the names of the operators that have methods, and the methods, which refer to their operators by index.
fn generated(operators: &BTreeMap<&str, Vec<Overload<'_>>>) -> (String, String) {
    let mut of_var = String::new();
    let mut of_ops = String::new();
    let mut settings = BTreeSet::new();
    let mut names = String::new();
    let mut count = 0;
    for (name, overloads) in operators {
        let of_tensors: Vec<&Overload<'_>> = overloads.iter().filter(|o| o.is_of_tensors()).collect();
        if of_tensors.is_empty() || BY_HAND.contains(name) {
            continue;
        }
        settings.extend(of_tensors.iter().flat_map(|o| &o.arguments).map(|a| a.1));
        let method = RENAMED
            .iter()
            .find(|(n, _)| n == name)
            .map_or(*name, |(_, renamed)| renamed);
        let with_self: Vec<&Overload<'_>> = of_tensors.iter().copied().filter(|o| o.starts_with_tensor()).collect();
        let (out, chosen, skipped) = match with_self.is_empty() {
            true => (&mut of_ops, &of_tensors, 0),
            false => (&mut of_var, &with_self, 1),
        };
        let required = required(chosen);
        let required = required.get(skipped..).unwrap_or_default();
        doc(out, overloads);
        let parameters: Vec<String> = required
            .iter()
            .map(|name| format!(", {}: impl Into<Arg<'a>>", identifier(name)))
            .collect();
        let given: Vec<String> = required
            .iter()
            .map(|name| format!(".positional({})", identifier(name)))
            .collect();
        let _ = writeln!(
            out,
            "    #[track_caller]\n    pub fn {}<'a>(&'a self{}) -> OpCall<'a> {{\n        self.start_known({count}){}\n    }}",
            identifier(method),
            parameters.concat(),
            given.concat(),
        );
        let _ = writeln!(names, "    \"aten::{name}\",");
        count += 1;
    }
    let mut of_call = String::new();
    for name in settings {
        let _ = writeln!(
            of_call,
            "    /// Gives argument `{name}`.\n    pub fn {}(self, value: impl Into<Arg<'a>>) -> OpCall<'a> {{\n        self.with(\"{name}\", value)\n    }}",
            identifier(name),
        );
    }
    let allow = "#[allow(clippy::should_implement_trait, clippy::too_many_arguments, clippy::wrong_self_convention, non_snake_case, reason = \"PyTorch's names\")]";
    let names = format!(
        "/// Operators that have methods; a method knows its operator's index.\npub(super) static NAMES: [&str; {count}] = [\n{names}];\n"
    );
    let methods = format!(
        "{allow}\n/// Operators that start from this tensor. The [module documentation](crate::eager) shows how they are called.\nimpl Var {{\n{of_var}}}\n\n\
         {allow}\n/// Operators that start from something other than one tensor. The [`Ops`] documentation shows how they are called.\nimpl Ops {{\n{of_ops}}}\n\n\
         {allow}\n/// Arguments by name, as in the example of [`OpCall`].\nimpl<'a> OpCall<'a> {{\n{of_call}}}\n"
    );
    (names, methods)
}

/// Returns the leading arguments that every overload requires, with the names of the first of the shortest overloads. Out variants are ignored.
fn required<'t>(overloads: &[&Overload<'t>]) -> Vec<&'t str> {
    let any_functional = overloads.iter().any(|o| !o.writes_out());
    let deciding = overloads.iter().filter(|o| !any_functional || !o.writes_out());
    let leading = deciding.map(|o| o.arguments.iter().take_while(|a| !a.2).map(|a| a.1).collect::<Vec<_>>());
    leading.min_by_key(Vec::len).unwrap_or_default()
}

fn doc(out: &mut String, overloads: &[Overload<'_>]) {
    out.push_str("    /// ```text\n");
    for overload in overloads {
        let _ = writeln!(out, "    /// {}", overload.line.trim());
    }
    out.push_str("    /// ```\n");
}

/// Returns `name` as a Rust identifier.
fn identifier(name: &str) -> String {
    match name {
        "self" => "self_".to_owned(),
        _ if KEYWORDS.contains(&name) => format!("r#{name}"),
        _ => name.to_owned(),
    }
}
