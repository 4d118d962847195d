//! Measured kernel variants: results do not change, the file contains the measurements, and broken files are harmless.
#![cfg(feature = "codegen")]

use frazil::ir::DType;
use frazil::{Engine, EngineKind, EngineOptions, Error, Session, Tensor};
use std::path::Path;

fn engine(tune: Option<&Path>) -> Result<Engine, Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models/residual_cnn/model.pt");
    Session::new().load(path)?.engine(
        &EngineOptions::default()
            .kind(EngineKind::Native)
            .strict(true)
            .tune(tune.map(Path::to_owned)),
    )
}

fn results(engine: &mut Engine) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let x = Tensor::full(DType::Float, &[1, 3, 32, 32], 0.25.into())?;
    let result = engine.call("forward", &[x.into()])?;
    Ok(result.as_tensor().ok_or("a tensor")?.to_f64_vec())
}

#[test]
fn measured_kernels_give_the_same_results() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("model.pt.tune");
    let plain = results(&mut engine(None)?)?;
    let near = |got: &[f64]| got.len() == plain.len() && got.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-3);
    assert!(near(&results(&mut engine(Some(&file))?)?));
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let kernels = found["kernels"].as_object().ok_or("a table of kernels")?;
    assert!(!kernels.is_empty());

    // Known kernels are not measured again, which would write the file.
    let written = std::fs::metadata(&file)?.modified()?;
    assert!(near(&results(&mut engine(Some(&file))?)?));
    assert_eq!(std::fs::metadata(&file)?.modified()?, written);

    std::fs::write(&file, "{\"kernels\": 3}")?;
    assert_eq!(results(&mut engine(Some(&file))?)?, plain);
    assert_eq!(std::fs::read_to_string(&file)?, "{\"kernels\": 3}");
    Ok(())
}
