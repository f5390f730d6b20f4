//! Writes a made-up run in all forms into a folder: `cargo run --release -p cuzk-timeline --example made_up_run --
//! FOLDER [JOBS]`.

#[path = "../tests/made_up/mod.rs"]
mod made_up;

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::BufWriter,
    path::PathBuf,
};

use cuzk_timeline::Summary;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("the folder to write to is missing")?);
    let jobs = arguments.next().map_or(Ok(20), |jobs| jobs.parse())?;
    fs::create_dir_all(&folder)?;
    let timeline = made_up::made_up_run(jobs, 10);
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    timeline.write_html(create("waterfall.html")?)?;
    timeline.write_perfetto(create("perfetto.json")?)?;
    timeline.write(create("timeline.jsonl")?)?;
    print!("{}", Summary::of(&timeline));
    Ok(())
}
