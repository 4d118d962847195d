//! Files of `torch.save` are compared with their contents in PyTorch, and `make_checkpoints.py` reads files of ours with `torch.load`.

use frazil::{Checkpoint, Session, StateDict, Tensor, read_checkpoint, write_checkpoint};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/checkpoints")
}

fn expected() -> serde_json::Map<String, Json> {
    let text = std::fs::read_to_string(folder().join("expected.json")).unwrap();
    let Json::Object(files) = serde_json::from_str(&text).unwrap() else {
        panic!("an object of files")
    };
    files
}

fn state(name: &str, case: &Json) -> frazil::Result<StateDict> {
    let key: Vec<&str> = case["key"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    Checkpoint::read(folder().join(format!("{name}.pt")))?.state_dict_at(&key)
}

/// Returns a tensor in the form of expected.json.
fn described(t: &Tensor) -> Json {
    let data = match t.dtype().is_complex() {
        // The dtypes of expected.json are real numbers of complex dtypes.
        true => t.to_f64_vec().into_iter().flat_map(|x| [x, 0.0]).collect(),
        false => t.to_f64_vec(),
    };
    serde_json::json!({
        "dtype": t.dtype().python_name(),
        "sizes": t.sizes(),
        "strides": t.strides(),
        "data": data,
        "requires_grad": t.requires_grad(),
    })
}

#[test]
fn tensors_are_what_pytorch_saved() {
    for (name, case) in &expected() {
        let found = state(name, case);
        if let Some(why) = case.get("refused") {
            let error = found.unwrap_err().to_string();
            assert!(error.contains(why.as_str().unwrap()), "{name}: {error}");
            continue;
        }
        let found = found.unwrap();
        let tensors: serde_json::Map<String, Json> =
            found.iter().map(|(name, t)| (name.clone(), described(t))).collect();
        assert_eq!(Json::Object(tensors.clone()), case["tensors"], "{name}");
        let order = case["tensors"].as_object().unwrap().keys();
        assert!(tensors.keys().eq(order), "{name}");
    }
}

/// Returns the dictionaries in written.pt.
fn all() -> StateDict {
    let files = expected();
    let parts = ["dtypes", "shared", "sizes", "kept"].map(|name| state(name, &files[name]).unwrap());
    parts.into_iter().flatten().collect()
}

#[test]
fn shared_memory_stays_shared() {
    let state = all();
    assert!(state["all"].shares_storage(&state["part"]) && state["all"].shares_storage(&state["table"]));
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("again.pt");
    write_checkpoint(&state, &path).unwrap();
    let again = read_checkpoint(&path).unwrap();
    assert!(again["all"].shares_storage(&again["part"]) && !again["all"].shares_storage(&again["scalar"]));
    for (name, t) in &state {
        assert_eq!(described(t), described(&again[name]), "{name}");
    }
}

/// `make_checkpoints.py` reads the file with `torch.load(weights_only=True)`.
#[test]
fn files_are_written_as_pytorch_reads_them() {
    let folder_of_ours = tempfile::tempdir().unwrap();
    let path = folder_of_ours.path().join("written.pt");
    write_checkpoint(&all(), &path).unwrap();
    let there = folder().join("written.pt");
    if std::env::var_os("FRAZIL_BLESS").is_some() {
        std::fs::copy(&path, &there).unwrap();
    }
    assert!(
        std::fs::read(&path).unwrap() == std::fs::read(&there).unwrap_or_default(),
        "written.pt is another: FRAZIL_BLESS=1 writes it, and make_checkpoints.py has to read it"
    );
}

#[test]
fn state_goes_into_a_module() {
    let source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))\n    \
                  def forward(self, x):\n        return self.net(x)\nmodel = Net().eval()\n";
    let model = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut model = model.to_model("forward").unwrap();
    let checkpoint = Checkpoint::read(folder().join("nested.pt")).unwrap();
    assert_eq!(
        checkpoint.entries(&[]).unwrap()[..2],
        [("model", "a dictionary"), ("epoch", "an int")]
    );
    let state = checkpoint.state_dict_at(&["model"]).unwrap();
    model
        .submodule_mut("net")
        .unwrap()
        .load_state_dict(&state, true)
        .unwrap();
    let weight = model.root().get_parameter("net.0.weight").unwrap();
    assert_eq!(weight.to_f64_vec(), state["0.weight"].to_f64_vec());
    let missing = checkpoint.state_dict_at(&["ema"]).unwrap_err().to_string();
    assert!(missing.contains("an entry at \"ema\""), "{missing}");
}

/// Truncated and modified files are errors and have no other effect.
#[test]
fn damaged_files_are_errors() {
    let bytes = std::fs::read(folder().join("shared.pt")).unwrap();
    for length in (0..bytes.len()).step_by(7) {
        assert!(Checkpoint::from_bytes("state.pt".as_ref(), bytes[..length].to_vec()).is_err());
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        let checkpoint = Checkpoint::from_bytes("state.pt".as_ref(), changed);
        let _ = checkpoint.and_then(|checkpoint| checkpoint.state_dict());
    }
}
