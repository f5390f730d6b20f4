//! `cuzk timeline`: what an engine recorded, as a summary, a page and Perfetto JSON.

use std::io;

use cuzk_timeline::{Summary, Timeline};

use crate::{
    args::{Global, TimelineArgs},
    failure::Failure,
    files, report,
};

pub(crate) fn run(global: &Global, args: &TimelineArgs) -> Result<(), Failure> {
    for out in [&args.html, &args.perfetto].into_iter().flatten() {
        files::check_target(out)?;
        files::refuse_same(&args.file, out)?;
    }
    let bytes = files::read(&args.file)?;
    let timeline = Timeline::read(&bytes[..]).map_err(|e| Failure::input(format!("{}: {e}", args.file.display())))?;
    let written = |write: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let mut out = Vec::new();
        write(&mut out).map(|()| out).map_err(|e| Failure::input(format!("{}: {e}", args.file.display())))
    };
    if let Some(path) = &args.html {
        files::write(path, &written(&|out| timeline.write_html(out))?)?;
    }
    if let Some(path) = &args.perfetto {
        files::write(path, &written(&|out| timeline.write_perfetto(out))?)?;
    }
    let summary = Summary::of(&timeline);
    report::print(
        global,
        || serde_json::json!({ "summary": summary, "html": args.html, "perfetto": args.perfetto }),
        || summary.to_string().trim_end().to_owned(),
    )
}
