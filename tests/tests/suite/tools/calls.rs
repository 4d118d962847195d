//! Calls of `jit-run`, and messages about them.

use frazil_recorded::workspace::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/calls").join(name)
}

fn jit_run(arguments: &[&str]) -> Output {
    let output = Command::new(tool("jit-run")).args(arguments).output();
    output.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Makes the calls of `case` on the fixture `model`.
fn calls(model: &str, case: &str, engine: &str) -> (Output, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("case.json");
    std::fs::write(&file, case).unwrap();
    let out = folder.path().join("out");
    let output = jit_run(&[
        fixture(model).to_str().unwrap(),
        &format!("--engine={engine}"),
        "--calls",
        file.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    let results = std::fs::read_to_string(out.join("results.json")).unwrap_or_default();
    (output, results)
}

/// PyTorch's results: tests/fixtures/calls/hooks.json.
#[test]
fn forward_stands_for_the_module_with_its_hooks() {
    for engine in ["interp", "native"] {
        let case = r#"{"calls": [{"args": [{"int": 1}]}, {"args": [], "kwargs": {"x": {"int": 1}}}, {"method": "forward", "args": [{"int": 5}]}]}"#;
        let (output, results) = calls("hooks_number.pt", case, engine);
        assert!(output.status.success());
        let results: serde_json::Value = serde_json::from_str(&results).unwrap();
        assert_eq!(
            results["results"][0].to_string(),
            r#"{"tuple":[{"int":202},{"int":101}]}"#
        );
        assert_eq!(
            results["results"][2].to_string(),
            r#"{"tuple":[{"int":210},{"int":105}]}"#
        );
        // Hooks receive positional arguments.
        let raised = results["results"][1]["raises"].as_str().unwrap();
        assert!(raised.contains("Object () had a different number of elements than type Tuple[int]"));
        let said = text(&output.stderr);
        assert!(
            said.contains("call 1 raised RuntimeError: number_plus_100() Expected"),
            "{said}"
        );
        assert_eq!(said.matches("raised").count(), 1, "{said}");
    }
}

#[test]
fn the_method_alone_runs_without_hooks() {
    let model = fixture("hooks_after.pt");
    let input = ["--input", "ones:2"];
    for (method, expected) in [(None, "error"), (Some("--method=forward"), "tensor([2., 2.])")] {
        let arguments: Vec<&str> = [model.to_str().unwrap(), "--engine=interp"]
            .into_iter()
            .chain(input)
            .chain(method)
            .collect();
        let output = jit_run(&arguments);
        // The hook has two parameters and receives one value.
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(
            said.contains(expected) || !output.status.success() && method.is_none(),
            "{said}"
        );
        assert_eq!(said.contains("plus_second() Expected"), method.is_none(), "{said}");
    }
}

#[test]
fn arguments_are_blamed_on_the_caller() {
    let model = fixture("arguments.pt");
    let output = jit_run(&[model.to_str().unwrap(), "--method=s", "--input", "ones:2"]);
    let said = text(&output.stderr);
    assert!(!output.status.success());
    let expected = "s() Expected a value of type 'str' for argument 'x' but instead found type 'Tensor'.\nPosition: 1\n\
                    Value: tensor([1., 1.])\nDeclaration: s(__torch__.M self, str x) -> str";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn unknown_keys_of_a_case_are_errors() {
    for (case, key) in [
        (r#"{"metod": "other", "calls": []}"#, "metod"),
        (r#"{"calls": [{"args": [], "keywords": {}}]}"#, "keywords"),
        (r#"{"calls": [{"args": []}, {"args": [], "preserve": []}]}"#, "preserve"),
    ] {
        let (output, _) = calls("hooks_number.pt", case, "interp");
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(&format!("unknown key `{key}`")),
            "{said}"
        );
    }
}
