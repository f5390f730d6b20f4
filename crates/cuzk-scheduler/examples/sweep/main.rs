//! The recorded sweep of the seed system, simulated: tables on standard output, plots in a directory.
//!
//! ```text
//! cargo run --release -p cuzk-scheduler --example sweep -- docs/simulator
//! ```

mod plot;

use std::{error::Error, fs, path::PathBuf};

use cuzk_scheduler::{simulation::*, units::GIB, *};
use plot::{Chart, Mark, Series};

/// partition_workers, measured seconds a proof, measured peak GiB.
const MEASURED: [(usize, f64, f64); 8] = [
    (1, 290.0, 104.0),
    (2, 152.0, 110.0),
    (5, 68.4, 170.0),
    (7, 53.3, 208.0),
    (10, 38.5, 321.0),
    (12, 37.7, 400.0),
    (14, 37.8, 457.0),
    (16, 38.4, 510.0),
];

/// Where the seed system ran out of memory with twelve workers.
const EXHAUSTED: f64 = 668.0;

const BLUE: &str = "#1f6feb";
const RED: &str = "#cf222e";
const GREEN: &str = "#1a7f37";
const ORANGE: &str = "#bc4c00";
const PURPLE: &str = "#8250df";

struct Variant {
    name: &'static str,
    color: &'static str,
    apply: fn(&mut Config),
}

const VARIANTS: [Variant; 6] = [
    Variant { name: "all lessons", color: BLUE, apply: |_| {} },
    Variant { name: "permit until synthesis ends", color: RED, apply: |c| c.permit = PermitScope::Synthesis },
    Variant { name: "no early free", color: ORANGE, apply: |c| c.ablation.early_free = false },
    Variant { name: "no capacity scaling", color: GREEN, apply: |c| c.ablation.capacity_scaling = false },
    Variant {
        name: "none of the three",
        color: "#57606a",
        apply: |c| {
            c.permit = PermitScope::Synthesis;
            c.ablation = Ablation { early_free: false, capacity_scaling: false };
        },
    },
    Variant { name: "permit until proved", color: PURPLE, apply: |c| c.permit = PermitScope::Proved },
];

fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB as f64
}

fn with_workers(plan: &Plan, workers: usize) -> Plan {
    let mut plan = plan.clone();
    plan.config.partition_workers = Workers::Fixed(workers);
    plan
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("where to? Give a directory.")?);
    fs::create_dir_all(&directory)?;
    let seed: Plan = toml::from_str(include_str!("../../profiles/seed.toml"))?;
    let write = |name: &str, chart: Chart| fs::write(directory.join(name), chart.svg());

    let (seconds, peak) = sweep(&seed)?;
    write("seconds.svg", seconds)?;
    write("peak.svg", peak)?;
    write("memory.svg", ablations(&seed)?)?;
    write("permits.svg", permits(&seed)?)?;
    concurrency(&seed)?;
    automatic(&seed)?;
    write("devices.svg", fleet(&seed)?)?;
    Ok(())
}

/// The sweep over `partition_workers`.
fn sweep(seed: &Plan) -> Result<(Chart, Chart), SimulationError> {
    println!("| workers | s/proof measured | simulated | | peak GiB measured | simulated | | device busy |");
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (workers, seconds, peak) in MEASURED {
        let report = simulate(&with_workers(seed, workers))?;
        let (s, g) = (report.streams[0].seconds_per_job, gib(report.peak_resident));
        let (ds, dg) = (100.0 * (s / seconds - 1.0), 100.0 * (g / peak - 1.0));
        let busy = 100.0 * report.devices[0].utilization();
        println!("| {workers} | {seconds} | {s:.1} | {ds:+.1} % | {peak} | {g:.0} | {dg:+.1} % | {busy:.0} % |");
    }
    let mut curves = [Vec::new(), Vec::new()];
    for workers in 1..=20 {
        let report = simulate(&with_workers(seed, workers))?;
        curves[0].push((workers as f64, report.streams[0].seconds_per_job));
        curves[1].push((workers as f64, gib(report.peak_resident)));
    }
    let [seconds, peak] = curves;
    let measured = |of: fn(&(usize, f64, f64)) -> f64| MEASURED.iter().map(|m| (m.0 as f64, of(m))).collect();
    let chart = |title: &str, y_label: &str, simulated, measured| Chart {
        title: title.into(),
        x_label: "partition_workers".into(),
        y_label: y_label.into(),
        series: vec![
            Series { name: "simulated".into(), color: BLUE, mark: Mark::Line, points: simulated },
            Series { name: "measured".into(), color: RED, mark: Mark::Dots, points: measured },
        ],
    };
    Ok((
        chart("Seconds a proof", "seconds", seconds, measured(|m| m.1)),
        chart("Peak resident memory", "GiB", peak, measured(|m| m.2)),
    ))
}

/// What each lesson is worth.
fn ablations(seed: &Plan) -> Result<Chart, SimulationError> {
    println!("\n| variant | 7 workers | | 10 workers | | 12 workers | | 12 workers, 300 GiB to reserve | |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut series = Vec::new();
    for Variant { name, color, apply } in VARIANTS {
        print!("| {name} |");
        for (workers, budget) in [(7, None), (10, None), (12, None), (12, Some(300 * GIB))] {
            let mut plan = with_workers(seed, workers);
            apply(&mut plan.config);
            plan.machine.host = budget.unwrap_or(plan.machine.host);
            let report = simulate(&plan)?;
            print!(" {:.1} s | {:.0} GiB |", report.streams[0].seconds_per_job, gib(report.peak_resident));
            if workers == 12 && budget.is_none() && name != "none of the three" {
                let points = report.memory.iter().map(|p| (p.seconds, gib(p.resident))).collect();
                series.push(Series { name: name.into(), color, mark: Mark::Line, points });
            }
        }
        println!();
    }
    let end = series.iter().flat_map(|s| &s.points).map(|p| p.0).fold(0.0, f64::max);
    let points = vec![(0.0, EXHAUSTED), (end, EXHAUSTED)];
    series.push(Series { name: "out of memory when measured".into(), color: "#8c959f", mark: Mark::Dashes, points });
    Ok(Chart {
        title: "Resident memory with twelve workers".into(),
        x_label: "seconds".into(),
        y_label: "GiB".into(),
        series,
    })
}

/// How much memory buys how much speed, by how long a permit is held.
fn permits(seed: &Plan) -> Result<Chart, SimulationError> {
    println!("\n| workers | permit through the send | | permit until proved | |\n|--:|--:|--:|--:|--:|");
    let mut curves = [Vec::new(), Vec::new()];
    for workers in 7..=20 {
        let mut cells = String::new();
        for (permit, curve) in [PermitScope::Send, PermitScope::Proved].into_iter().zip(&mut curves) {
            let mut plan = with_workers(seed, workers);
            plan.config.permit = permit;
            let report = simulate(&plan)?;
            let (s, g) = (report.streams[0].seconds_per_job, gib(report.peak_resident));
            cells += &format!(" {s:.1} s | {g:.0} GiB |");
            curve.push((g, s));
        }
        if workers % 2 == 0 {
            println!("| {workers} |{cells}");
        }
    }
    let [send, proved] = curves;
    let names = [("through the send", BLUE, send), ("until proved", PURPLE, proved)];
    let series = names.map(|(name, color, points)| Series { name: name.into(), color, mark: Mark::Line, points });
    Ok(Chart {
        title: "What memory buys: 7 to 20 workers, by how long a permit is held".into(),
        x_label: "peak resident GiB".into(),
        y_label: "seconds a proof".into(),
        series: series.into(),
    })
}

/// The sweep over concurrency with ten workers, which no parameter was fitted to.
fn concurrency(seed: &Plan) -> Result<(), SimulationError> {
    println!("\n| concurrency | s/proof measured | simulated | |\n|--:|--:|--:|--:|");
    for (concurrency, seconds) in [(5, 41.4), (10, 38.7), (15, 38.2), (20, 38.0)] {
        let mut plan = with_workers(seed, 10);
        plan.streams[0].concurrency = concurrency;
        let s = simulate(&plan)?.streams[0].seconds_per_job;
        println!("| {concurrency} | {seconds} | {s:.1} | {:+.1} % |", 100.0 * (s / seconds - 1.0));
    }
    Ok(())
}

/// What `auto` chooses.
fn automatic(seed: &Plan) -> Result<(), SimulationError> {
    let mut plan = seed.clone();
    plan.config.partition_workers = Workers::Auto;
    println!("\n{}", simulate(&plan)?);
    Ok(())
}

/// More devices on the same host, and on a host whose witnesses are 0.1 GiB and cost a tenth.
fn fleet(seed: &Plan) -> Result<Chart, SimulationError> {
    let mut packed = seed.clone();
    let circuit = &mut packed.circuits[0];
    circuit.synthesis.seconds /= 10.0;
    circuit.synthesis.traffic /= 10;
    let bytes = HostBytes { host: GIB / 10, pinned: 0 };
    let partition = &mut circuit.profile.partition;
    (partition.synthesis, partition.synthesized, partition.finishing) = (bytes, bytes, HostBytes::default());
    println!("\n| devices | as measured | device busy | packed witnesses | device busy | peak GiB |");
    println!("|--:|--:|--:|--:|--:|--:|");
    let mut curves = [Vec::new(), Vec::new()];
    for devices in 1..=8 {
        let mut cells = String::new();
        let mut peak = 0;
        for (plan, curve) in [seed, &packed].into_iter().zip(&mut curves) {
            let mut plan = plan.clone();
            plan.config.partition_workers = Workers::Auto;
            plan.machine.host = 600 * GIB;
            plan.machine.devices[0].count = devices;
            let report = simulate(&plan)?;
            let s = report.streams[0].seconds_per_job;
            curve.push((devices as f64, s));
            let busy = report.devices.iter().map(DeviceReport::utilization).sum::<f64>() / devices as f64;
            cells += &format!(" {s:.1} s | {:.0} % |", 100.0 * busy);
            peak = report.peak_resident;
        }
        println!("| {devices} |{cells} {:.0} |", gib(peak));
    }
    let [measured, packed] = curves;
    let series = [("16 GiB a partition", RED, measured), ("0.1 GiB, a tenth of the time", BLUE, packed)];
    let line =
        |(name, color, points): (&str, &'static str, _)| Series { name: name.into(), color, mark: Mark::Line, points };
    Ok(Chart {
        title: "More devices, workers chosen automatically".into(),
        x_label: "devices".into(),
        y_label: "seconds a proof".into(),
        series: series.map(line).into(),
    })
}
