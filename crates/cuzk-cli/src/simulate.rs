//! `cuzk simulate`: a machine and its work, described in a file, run through the scheduler in virtual time.

use cuzk_scheduler::{
    Workers,
    simulation::{Plan, Report, simulate},
};

use crate::{
    args::{Global, SimulateArgs},
    failure::Failure,
    report,
};

pub(crate) fn run(global: &Global, args: &SimulateArgs) -> Result<(), Failure> {
    let path = args.plan.display();
    let text = cuzk_bench::files::read_text(&args.plan)?;
    let plan: Plan =
        toml::from_str(&text).map_err(|e| Failure::input(format!("{path}: {}", e.to_string().trim_end())))?;
    let workers = if args.partition_workers.is_empty() {
        vec![plan.config.partition_workers]
    } else {
        args.partition_workers.clone()
    };
    let mut runs = Vec::with_capacity(workers.len());
    for workers in workers {
        let mut plan = plan.clone();
        plan.config.partition_workers = workers;
        // A plan that makes no sense, or what the machine described cannot do.
        let report = simulate(&plan).map_err(|error| Failure::input(format!("{path}: {error}")))?;
        runs.push((workers, report));
    }
    report::print(
        global,
        || serde_json::json!({ "plan": report::path(&args.plan), "runs": runs.iter().map(json).collect::<Vec<_>>() }),
        || match &runs[..] {
            [(_, only)] => only.to_string().trim_end().to_owned(),
            _ => table(&runs),
        },
    )
}

fn name(workers: Workers) -> String {
    match workers {
        Workers::Fixed(n) => n.to_string(),
        Workers::Auto => "auto".to_owned(),
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// A line for each number of workers.
fn table(runs: &[(Workers, Report)]) -> String {
    let mut lines = vec!["workers   s/job  peak GiB  devices busy".to_owned()];
    for (workers, report) in runs {
        let jobs: usize = report.streams.iter().map(|s| s.completed).sum();
        let devices = report.devices.len().max(1) as f64;
        let busy = report.devices.iter().map(|d| d.utilization()).sum::<f64>() / devices;
        lines.push(format!(
            "{:>7} {:>7.1} {:>9.0} {:>11.1} %",
            name(*workers),
            report.seconds / jobs.max(1) as f64,
            gib(report.peak_resident),
            100.0 * busy
        ));
    }
    lines.join("\n")
}

fn json((workers, report): &(Workers, Report)) -> serde_json::Value {
    serde_json::json!({
        "partition_workers": name(*workers),
        "seconds": report.seconds,
        "peak_resident_bytes": report.peak_resident,
        "streams": report.streams.iter().map(|s| serde_json::json!({
            "completed": s.completed, "seconds_per_job": s.seconds_per_job,
            "latency_p50_s": s.quantile(0.5), "latency_p95_s": s.quantile(0.95),
        })).collect::<Vec<_>>(),
        "devices": report.devices.iter().map(|d| serde_json::json!({
            "name": d.name, "utilization": d.utilization(), "busy_s": d.busy, "idle_s": d.gaps,
        })).collect::<Vec<_>>(),
        "pools": report.pools.iter().map(|(pool, usage)| serde_json::json!({
            "pool": pool.to_string(), "capacity_bytes": usage.capacity, "peak_bytes": usage.high_water,
        })).collect::<Vec<_>>(),
        "failed": report.failed.iter().map(|(job, cause)| format!("{job}: {cause}")).collect::<Vec<_>>(),
        "refused": report.refused.iter().map(|(job, why)| format!("{job}: {why}")).collect::<Vec<_>>(),
    })
}
