// The commit of a checkout, read from its files: git need not be installed, and nothing is run.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A commit, and what it was read from.
pub(crate) struct Found {
    /// Hexadecimal.
    pub(crate) commit: String,
    /// Files and directories that change when it does. All of them exist.
    pub(crate) read: Vec<PathBuf>,
}

/// The commit that is checked out in a directory; `None` if it is no checkout.
pub(crate) fn of(root: &Path) -> Option<Found> {
    let git = directory(&root.join(".git"))?;
    // Of a further working tree the branches are those of the first.
    let common = fs::read_to_string(git.join("commondir")).map_or(git.clone(), |path| git.join(path.trim_end()));
    let head_path = git.join("HEAD");
    let head = fs::read_to_string(&head_path).ok()?;
    let (packed_path, branches) = (common.join("packed-refs"), common.join("refs/heads"));
    let commit = match head.trim_end().strip_prefix("ref: ") {
        None => head.trim_end().to_owned(),
        Some(name) => match fs::read_to_string(common.join(name)) {
            Ok(commit) => commit.trim_end().to_owned(),
            Err(_) => {
                let packed = fs::read_to_string(&packed_path).ok()?;
                let line = packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '))?;
                line.to_owned()
            }
        },
    };
    let is_commit = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let read = [head_path, packed_path, branches].into_iter().filter(|path| path.exists()).collect();
    is_commit.then_some(Found { commit, read })
}

/// `.git` is a directory, or a file that says where it is.
fn directory(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = fs::read_to_string(git).ok()?;
    Some(git.parent()?.join(text.trim_end().strip_prefix("gitdir: ")?))
}
