//! Which commit the program says that it was built from.

use std::{fs, path::Path};

#[path = "../../build/commit.rs"]
mod read;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn of(files: &[(&str, &str)], checkout: &str) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), files);
    let found = read::of(&directory.path().join(checkout))?;
    assert!(!found.read.is_empty() && found.read.iter().all(|path| path.exists()));
    Some(found.commit)
}

#[test]
fn a_commit_is_read_from_every_form_of_checkout() {
    let commit = Some(COMMIT.to_owned());
    let line = format!("{COMMIT}\n");
    let on_branch = (".git/HEAD", "ref: refs/heads/some/branch\n");
    assert_eq!(of(&[on_branch, (".git/refs/heads/some/branch", &line)], ""), commit);
    assert_eq!(of(&[(".git/HEAD", &line)], ""), commit);
    let packed =
        format!("# pack-refs with: peeled\n{} refs/heads/branch\n{COMMIT} refs/heads/some/branch\n", "f".repeat(40));
    assert_eq!(of(&[on_branch, (".git/packed-refs", &packed)], ""), commit);
    let further = [
        ("further/.git", "gitdir: ../main/.git/worktrees/further\n"),
        ("main/.git/worktrees/further/HEAD", "ref: refs/heads/branch\n"),
        ("main/.git/worktrees/further/commondir", "../..\n"),
        ("main/.git/refs/heads/branch", &line),
    ];
    assert_eq!(of(&further, "further"), commit);
}

#[test]
fn what_is_no_checkout_has_no_commit() {
    assert_eq!(of(&[], ""), None);
    assert_eq!(of(&[(".git/HEAD", "ref: refs/heads/unborn\n")], ""), None);
    assert_eq!(of(&[(".git/HEAD", "rubbish\n")], ""), None);
    assert_eq!(of(&[(".git", "rubbish\n")], ""), None);
}
