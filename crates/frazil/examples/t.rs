use std::sync::Arc;
use frazil_runtime::{Registry, interp::Interpreter};
fn main(){
  for p in std::env::args().skip(1) {
    let mut r = Registry::new(Arc::new(frazil_ir::Context::new()));
    frazil_prim::register(&mut r); r.add_schemas(&std::fs::read_to_string("/work/shared/facts/schemas.txt").unwrap().lines().filter(|l| !l.starts_with("prim::")).collect::<Vec<_>>().join("\n"));
    let r=Arc::new(r);
    let t=std::time::Instant::now();
    match frazil_torchscript::load(std::path::Path::new(&p), &frazil_torchscript::LoadOptions{ctx:r.ctx(), catalogue:r.catalogue()}) {
      Ok(m) => { let el=t.elapsed(); let m=Arc::new(m); let i=Interpreter::with_module(r.clone(), m.clone()).unwrap(); println!("OK {p} {el:?} missing {:?}", i.missing_operators("forward").len());
         let mut bad=0; for (_,f) in m.unit.functions() { if let Err(e)=f.graph.verify(Some(r.catalogue())) { bad+=1; if bad<3 {println!("  {e}");} } } }
      Err(e) => println!("ERR {p}: {e}"),
    }
  }
}
