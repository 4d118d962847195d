//! Libraries in processes that fork, unload them, or are refused threads.

use crate::common::{is_under_valgrind, options};
use crate::preparation::{SIZE, plan};
use frazil_codegen::aot;
use std::process::Command;

#[test]
fn libraries_survive_forks_unloading_and_a_lack_of_threads() {
    let channels = options().target.vector().lanes;
    let ones = vec![1.0; (channels * channels * 9) as usize];
    let plan = plan(channels, &[ones.clone(), ones], true);
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("convolutions.so");
    aot::write_library(&plan, &options(), &library).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(directory.path().join("main.c"), include_str!("processes.c")).unwrap();
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-Wall", "-Werror", "-pthread", "-o", "main", "main.c", "-ldl"])
        .args([format!("-DSIZE={SIZE}"), format!("-DCHANNELS={channels}")])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for what in ["few", "fork", "busy", "unload", "limit"] {
        let mut command = Command::new("./main");
        if is_under_valgrind() {
            // Limits would be those of valgrind. Lost are instances that are unloaded, and in children those that other threads of the parent had.
            let leaks = match what {
                "limit" => continue,
                "busy" | "unload" => "--leak-check=no",
                _ => "--leak-check=full",
            };
            command = Command::new("valgrind");
            command.args(["--quiet", "--error-exitcode=99", "--fair-sched=yes", leaks]);
            command.args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]);
            command.arg("./main");
        }
        let ran = command.arg(what).current_dir(directory.path()).output().unwrap();
        let text = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{what}: {:?}: {text}", ran.status);
        assert_eq!(ran.stdout, b"all is as it should be\n", "{what}");
    }
}
