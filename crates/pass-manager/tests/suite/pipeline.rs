//! Textual pipelines.

use crate::numbers::{Numbers, PassInfo, PassRegistry};
use frazil_pass_manager::PipelineError;
use frazil_pass_manager::pipeline::{PipelineEntry, parse_pipeline};

fn parse(text: &str) -> Result<Vec<PipelineEntry<Numbers>>, PipelineError> {
    parse_pipeline(&PassRegistry::standard(), text)
}

#[test]
fn passes_and_options_are_read() {
    let entries = parse(" halve , add{by=3 skip-zeros} ,append-sum").unwrap();
    let names: Vec<_> = entries.iter().map(|e| e.info.name).collect();
    assert_eq!(names, ["halve", "add", "append-sum"]);
    assert!(entries[1].options.bool("skip-zeros"));
    assert_eq!(entries[1].options.int("by"), 3);
    assert_eq!(entries[1].text, "add{by=3 skip-zeros}");
    assert!(parse("").unwrap().is_empty());
}

#[test]
fn pipelines_nest() {
    let entries = parse("halve, repeat{max=3}( add, methods(halve) ), add").unwrap();
    assert_eq!(entries.len(), 3);
    let nested = entries[1].nested.as_ref().unwrap();
    assert_eq!(nested[1].nested.as_ref().unwrap()[0].info.name, "halve");
    assert_eq!(entries[1].text, "repeat{max=3}( add, methods(halve) )");
    assert!(parse("repeat").unwrap_err().to_string().contains("expected `(`"));
    assert!(parse("repeat(add").unwrap_err().to_string().contains("`)`"));
    assert!(parse("add)").is_err() && parse("add(halve)").is_err());
    let deep = parse(&"repeat(".repeat(1000)).unwrap_err().to_string();
    assert!(deep.contains("fewer"), "{deep}");
    let steps: Vec<_> = PassInfo::STEPS.iter().map(|step| step.name).collect();
    assert_eq!(steps, ["methods", "repeat"]);
}

#[test]
fn messages_show_a_part_of_long_pipelines() {
    let text = "add,".repeat(50_000) + "adb" + &",add".repeat(50_000);
    let message = parse(&text).unwrap_err().to_string();
    assert!(
        message.starts_with("there is no pass `adb`; did you mean `add`?"),
        "{message}"
    );
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines[1].starts_with("  ...") && lines[1].ends_with("...") && lines[1].len() < 300,
        "{message}"
    );
    let (column, end) = (lines[2].find('^').unwrap(), lines[2].rfind('^').unwrap());
    assert_eq!(&lines[1][column..=end], "adb");
}

#[test]
fn mistakes_have_a_place_and_a_hint() {
    let unknown = parse("append-sum,halv").unwrap_err();
    assert_eq!(unknown.span, 11..15);
    assert_eq!(
        unknown.to_string(),
        "there is no pass `halv`; did you mean `halve`?\n  append-sum,halv\n             ^^^^"
    );
    let option = parse("add{skip-zero}").unwrap_err();
    assert!(option.to_string().contains("did you mean `skip-zeros`?"), "{option}");
    let value = parse("add{skip-zeros=maybe}").unwrap_err();
    assert_eq!(value.span, 15..20);
    assert!(parse("add{by=x}").unwrap_err().to_string().contains("takes an integer"));
    assert!(parse("add{skip-zeros").is_err());
    assert!(parse("add halve").unwrap_err().to_string().contains("expected `,`"));
    assert!(parse(",").unwrap_err().to_string().contains("name of a pass"));
}
