//! Resources of a process: little memory if it finds stored code, since it does not touch the compiler, and one copy of the weights if it compiles.

use frazil_recorded::workspace::tool;
use std::path::Path;
use std::process::Command;

/// A small model, and its input.
const FIXTURE: (&str, &str) = (
    concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/residual_cnn/model.pt"),
    "ones:1x3x32x32",
);

/// Returns the peak memory in MiB of a process that measures `model` on `input`, and its notes on code.
fn measure((model, input): (&str, &str), cache: &Path) -> (f64, String) {
    let output = Command::new(tool("jit-run"))
        .args([model, "--input", input, "--bench", "--json", "--timing"])
        .arg(format!("--cache-dir={}", cache.display()))
        .output()
        .unwrap();
    let (out, notes) = (output.stdout, output.stderr);
    let out = String::from_utf8(out).unwrap();
    let json: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    (json["peak_rss_mb"].as_f64().unwrap(), String::from_utf8(notes).unwrap())
}

/// The model has 0.25 MB of weights.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn kept_code_needs_no_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let (compiling, notes) = measure(FIXTURE, folder.path());
    assert!(notes.contains("compiled in"), "{notes}");
    let (peak, notes) = measure(FIXTURE, folder.path());
    assert!(notes.contains("found in"), "{notes}");
    assert!(
        peak < 24.0 && peak < compiling / 2.0,
        "{peak} MiB of {compiling} MiB with the compiler"
    );
}

/// Layers with folded batch norms, and one more: 63 MiB of weights.
const LARGE: &str = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(512, 512, 3, padding=1), nn.BatchNorm2d(512)]
        layers += [nn.Conv2d(512, 512, 3, padding=1), nn.BatchNorm2d(512)]
        layers += [nn.Conv2d(512, 512, 3, padding=1), nn.BatchNorm2d(512)]
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(4608, 2048)
        self.eval()
    def forward(self, x):
        return self.fc(self.layers(x).flatten(1))
";

/// Neither the archive nor weights of folded layers are in memory beside the packed ones.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn weights_are_there_once() {
    const WEIGHTS: f64 = 63.0;
    let folder = tempfile::tempdir().unwrap();
    let [source, model, little, much] = ["net.py", "net.pt", "little", "much"].map(|name| folder.path().join(name));
    std::fs::write(&source, LARGE).unwrap();
    let written = Command::new(tool("jit-opt"))
        .args([&source, Path::new("-o"), &model])
        .status()
        .unwrap();
    assert!(written.success());
    let model = (model.to_str().unwrap(), "ones:1x512x3x3");
    // The first process compiles, the second finds the code.
    for (what, room) in [("compiled in", 24.0), ("found in", 3.0)] {
        let (small, _) = measure(FIXTURE, &little);
        let (large, notes) = measure(model, &much);
        assert!(notes.contains(what), "{notes}");
        assert!(
            large < small + WEIGHTS + room,
            "{large} MiB; {small} MiB with few weights"
        );
    }
}
