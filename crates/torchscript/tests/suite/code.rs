//! Printed code: the source files of an archive come back byte for byte from the module that is made of them.

use crate::common;

use proptest::test_runner::Config;
use std::collections::HashMap;

use common::listing::list_graph;
use common::{archives, catalogue};
use frazil_ir::Graph;
use frazil_torchscript::archive::Archive;
use frazil_torchscript::code::{CodeSource, print_function, print_method, print_module};
use frazil_torchscript::{LoadOptions, compile_source, load_archive};

/// Archives whose code PyTorch itself prints otherwise once it has loaded them: archive, entry, why.
const CHANGED_BY_LOADING: &[(&str, &str, &str)] = &[(
    "models/beam_search_script/model.pt",
    "code/__torch__/visible_models.py",
    "the variables of a `for` with a `break`, saved in the order of the first compilation, are put into the order of their use by the second",
)];

/// The first line in which two texts differ.
fn first_difference(ours: &str, theirs: &str) -> String {
    let at = ours.lines().zip(theirs.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("(end)").to_owned();
    format!("line {}:\n    {}\n  against\n    {}", at + 1, line(ours), line(theirs))
}

#[test]
fn archives_give_their_code_back() {
    let Some(corpus) = frazil_recorded::workspace::corpus() else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let mut failures = Vec::new();
    let mut count = 0;
    for path in archives(&corpus) {
        let name = path.strip_prefix(&corpus).unwrap().display().to_string();
        let archive = Archive::open(&path).unwrap();
        let module = load_archive(&archive, &options).unwrap();
        count += 1;
        let printed = match print_module(&module, &catalogue) {
            Ok(printed) => printed,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        for file in &printed.files {
            let entry = file.entry();
            match archive.text(&entry) {
                Ok(theirs) if theirs == file.code.as_str() => {}
                Ok(_) if CHANGED_BY_LOADING.iter().any(|(a, e, _)| *a == name && *e == entry) => {}
                Ok(theirs) => failures.push(format!(
                    "{name}: {entry}, {}",
                    first_difference(file.code.as_str(), &theirs)
                )),
                Err(error) => failures.push(format!("{name}: {error}")),
            }
        }
        for entry in archive.names().filter(|n| n.starts_with("code/") && n.ends_with(".py")) {
            if !printed.files.iter().any(|file| file.entry() == entry) {
                failures.push(format!("{name}: {entry} is missing"));
            }
        }
        if printed.min_version.max(3) != archive.version() {
            failures.push(format!(
                "{name}: version {} against {}",
                printed.min_version,
                archive.version()
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} differences in {count} archives:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn methods_are_those_of_pytorch() {
    let Some(corpus) = frazil_recorded::workspace::corpus() else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let mut failures = Vec::new();
    let mut count = 0;
    for path in archives(&corpus.join("models")) {
        let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(theirs) = std::fs::read_to_string(corpus.join("ir").join(&name).join("code.py")) else {
            continue;
        };
        count += 1;
        let module = load_archive(&Archive::open(&path).unwrap(), &options).unwrap();
        let method = module.method_function(frazil_ir::symbols::FORWARD).unwrap();
        let source = CodeSource {
            ctx: &ctx,
            unit: Some(&module.unit),
            catalogue: &catalogue,
        };
        let ours = print_method(source, method).unwrap().code.into_string();
        if ours != theirs {
            failures.push(format!("{name}: {}", first_difference(&ours, &theirs)));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} methods differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Writes random functions: arithmetic on tensors and integers, branches, loops, tuples and lists.
struct Generator {
    state: u64,
    text: String,
    tensors: Vec<String>,
    ints: Vec<String>,
    count: usize,
}

impl Generator {
    /// A function of `size` statements.
    fn function(seed: u64, size: usize) -> String {
        let mut generator = Generator {
            state: seed | 1,
            text: "def f(x: Tensor, y: Tensor, n: int, xs: List[Tensor], o: Optional[Tensor]):\n".into(),
            tensors: vec!["x".into(), "y".into()],
            ints: vec!["n".into()],
            count: 0,
        };
        generator.suite(size, 1);
        let (a, b) = (generator.tensor(), generator.int());
        generator.text += &format!("    return {a}, {b}, [{a}, x]\n");
        generator.text
    }

    fn below(&mut self, n: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) as usize) % n
    }

    fn pick(&mut self, from: &[String]) -> String {
        let i = self.below(from.len());
        from[i].clone()
    }

    /// A tensor expression.
    fn tensor(&mut self) -> String {
        let known = self.tensors.clone();
        let a = self.pick(&known);
        match self.below(9) {
            0 => format!("({a} + {})", self.int()),
            1 => format!("torch.relu({})", self.tensor()),
            2 => format!("{a}.mul({})", self.tensor()),
            3 => format!("torch.clamp({a}, min={})", self.int()),
            4 => format!("torch.cat([{a}, {}], dim=0)", self.tensor()),
            5 => format!("{a}[{}:, None]", self.int()),
            6 => format!("torch.sum({a}, [0, 1], keepdim=True)"),
            _ => a,
        }
    }

    fn int(&mut self) -> String {
        let known = self.ints.clone();
        match self.below(5) {
            0 => format!("{}", self.below(5)),
            1 => format!("len(xs) * {}", self.below(3)),
            2 => format!("({} - {})", self.pick(&known), self.below(9)),
            _ => self.pick(&known),
        }
    }

    fn suite(&mut self, size: usize, depth: usize) {
        let indent = "    ".repeat(depth);
        for _ in 0..size {
            self.count += 1;
            let id = self.count;
            // Variables of a suite are known in it only; those from outside may be assigned again.
            let (tensors, ints) = (self.tensors.len(), self.ints.len());
            match self.below(if depth > 3 { 6 } else { 10 }) {
                0 | 1 => {
                    let value = self.tensor();
                    self.text += &format!("{indent}t{id} = {value}\n");
                    self.tensors.push(format!("t{id}"));
                    continue;
                }
                2 => {
                    let value = self.int();
                    self.text += &format!("{indent}i{id} = {value} + 1\n");
                    self.ints.push(format!("i{id}"));
                    continue;
                }
                3 => {
                    let known = self.tensors.clone();
                    let (target, value) = (self.pick(&known), self.tensor());
                    self.text += &format!("{indent}{target} = {value}\n");
                }
                4 => {
                    let (value, other) = (self.tensor(), self.tensor());
                    self.text += &format!("{indent}p{id} = ({value}, {other}.add_(1))\n{indent}xs.append(p{id}[1])\n");
                }
                5 => {
                    let value = self.tensor();
                    self.text += &format!("{indent}a{id}, b{id} = torch.max({value}, 0)\n");
                    self.tensors.push(format!("a{id}"));
                    continue;
                }
                6 | 7 => {
                    let (a, b) = (self.int(), self.int());
                    self.text += &format!("{indent}if {a} > {b}:\n");
                    self.suite(2, depth + 1);
                    self.tensors.truncate(tensors);
                    self.ints.truncate(ints);
                    self.text += &format!("{indent}else:\n{indent}    n = n + 1\n");
                    self.suite(1, depth + 1);
                }
                8 => {
                    let a = self.int();
                    self.text += &format!("{indent}for k{id} in range({a}):\n{indent}    n = n + k{id}\n");
                    self.suite(2, depth + 1);
                }
                _ => {
                    self.text += &format!("{indent}if o is not None:\n{indent}    x = x + o\n");
                    let bound = self.below(9);
                    self.text += &format!("{indent}while n < {bound}:\n{indent}    n += 2\n");
                    self.suite(1, depth + 1);
                }
            }
            self.tensors.truncate(tensors);
            self.ints.truncate(ints);
        }
    }
}

/// The listing of a graph with constants in the place of their uses: the order in which they stand at its head says nothing.
fn structure(graph: &Graph) -> Vec<String> {
    let lines = list_graph(graph);
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut out = Vec::new();
    for line in &lines {
        if let Some((value, constant)) = line.trim_start().split_once(" = prim::Constant") {
            let (value, ty) = value.split_once(" : ").unwrap();
            names.insert(value, format!("({ty}{constant})"));
            continue;
        }
        // The others are numbered anew, in the order in which they come.
        let word = |c: char| c != '%' && !c.is_ascii_digit();
        let mut rest = line.as_str();
        let mut renamed = String::new();
        while let Some(start) = rest.find('%') {
            let end = rest[start + 1..].find(word).map_or(rest.len(), |n| start + 1 + n);
            let count = names.len();
            let name = names.entry(&rest[start..end]).or_insert_with(|| format!("%v{count}"));
            renamed += &rest[..start];
            renamed += name;
            rest = &rest[end..];
        }
        renamed += rest;
        out.push(renamed);
    }
    // Numbers count constants, too, of which there may be fewer.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for line in &mut out {
        let mut renumbered = String::new();
        for (i, piece) in line.split("%v").enumerate() {
            let digits = piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
            if i > 0 {
                let count = numbers.len();
                renumbered += &format!("%{}", numbers.entry(piece[..digits].to_owned()).or_insert(count));
                renumbered += &piece[digits..];
            } else {
                renumbered += piece;
            }
        }
        *line = renumbered;
    }
    out
}

/// Names that people do not give, but passes and other front ends do.
const HOSTILE: &[&str] = &[
    "lambda",
    "a.b",
    "_",
    "x-1",
    "é",
    "CONSTANTS",
    "ops",
    "1x",
    "_0",
    "n",
    "inf",
    "x0",
    "self.w.1",
];

proptest::proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(200) })]

    /// What is printed compiles to the graph that was printed, whatever the values are called.
    #[test]
    fn generated_functions_round_trip(seed: u64, size in 1..14usize) {
        let (ctx, catalogue) = catalogue();
        let options = LoadOptions::new(&ctx, &catalogue);
        let source = CodeSource { ctx: &ctx, unit: None, catalogue: &catalogue };
        let only = |text: &str| {
            let unit = compile_source("test.py", text, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let (_, function) = unit.functions().next().unwrap();
            function.clone()
        };
        let written = Generator::function(seed, size);
        let mut function = only(&written);
        let printed = print_function(source, &function).unwrap().code.into_string();
        let again = only(&printed);
        assert_eq!(structure(&function.graph), structure(&again.graph), "\n{written}\n{printed}");

        // Variables of branches and loops keep their names: unused results are ordered by them.
        let nodes = function.graph.all_nodes();
        for node in nodes.into_iter().filter(|&node| function.graph.node_blocks(node).is_empty()).collect::<Vec<_>>() {
            for output in function.graph.node_outputs(node).to_vec() {
                let name = HOSTILE[(output.as_u32() as usize).wrapping_mul(seed as usize | 1) % HOSTILE.len()];
                function.graph.name_value(output, name);
            }
        }
        let hostile = print_function(source, &function).unwrap().code.into_string();
        let again = only(&hostile);
        assert_eq!(structure(&function.graph), structure(&again.graph), "\n{printed}\n{hostile}");
    }
}
