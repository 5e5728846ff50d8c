//! Our own cases: what Flink has no answer to, or was found wrong once. All of them pass.

use crate::ebbflow::{call, root};

#[test]
fn our_own_cases_pass() {
    let ended = call(&root().join("grammar-tests"), &["test", "ours"]);
    assert!(ended.stdout.contains(" passed, 0 failed"), "{}{}", ended.stdout, ended.stderr);
}
