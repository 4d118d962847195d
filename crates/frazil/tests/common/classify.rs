use frazil::{CompileOptions, FreezeOptions, InputSpec, Session, Tensor, ir::DType};

fn main() -> Result<(), frazil::Error> {
    let frozen = Session::new().load("model.pt")?.freeze(&FreezeOptions::default())?;
    let image = InputSpec::new(DType::Float, &[1, 3, 32, 32]);
    let mut forward = frozen.compile(&[image], &CompileOptions::default())?;
    let scores = forward.run(&[Tensor::zeros(DType::Float, &[1, 3, 32, 32])?])?;
    println!("{:?}", scores.as_tensor());
    Ok(())
}
