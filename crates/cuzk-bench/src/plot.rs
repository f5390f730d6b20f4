//! Two charts side by side as SVG: throughput and memory, a line for each number of partition workers.

use std::fmt::Write as _;

/// A line: its name, and points with x ascending.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) series: Vec<Series>,
}

/// Hues that people with any colour vision tell apart (Okabe and Ito, Color Universal Design, 2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 48.0;

/// The charts, with the legend of the first below them.
pub(crate) fn svg(charts: &[Chart]) -> String {
    let names: Vec<&str> = charts.first().map_or_else(Vec::new, |c| c.series.iter().map(|s| s.name.as_str()).collect());
    let (width, height) = (WIDTH * charts.len() as f64, HEIGHT + 28.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (i, chart) in charts.iter().enumerate() {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "<g transform=\"translate({} 0)\">", WIDTH * i as f64);
        draw(&mut out, chart);
        out += "</g>\n";
    }
    let mut x = LEFT;
    for (i, name) in names.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"18\" height=\"4\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            x + 24.0,
            HEIGHT + 12.0,
            escaped(name),
            y = HEIGHT + 6.0,
        );
        x += 44.0 + 7.0 * name.chars().count() as f64;
    }
    out + "</svg>\n"
}

fn draw(out: &mut String, chart: &Chart) {
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let highest = points().map(|p| p.1).fold(0.0, f64::max);
    let step = tick(highest);
    let top = (highest / step).ceil().max(1.0) * step;
    let (first, last) = points().fold((f64::MAX, f64::MIN), |(lo, hi), p| (lo.min(p.0), hi.max(p.0)));
    let span = if last > first { last - first } else { 1.0 };
    let at_x = |x: f64| LEFT + 12.0 + (x - first) / span * (WIDTH - LEFT - RIGHT - 24.0);
    let at_y = |y: f64| HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM);

    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"22\" font-size=\"14\">{}</text>", escaped(&chart.title));
    let decimals = if step < 1.0 { (-step.log10()).ceil() as usize } else { 0 };
    for i in 0..=(top / step).round() as u32 {
        let value = step * f64::from(i);
        let y = at_y(value);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.decimals$}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
        );
    }
    let mut marks: Vec<f64> = points().map(|p| p.0).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    for x in marks {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{x}</text>",
            at_x(x),
            HEIGHT - BOTTOM + 18.0
        );
    }
    let (middle, below) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    let _ = writeln!(out, "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{}</text>", escaped(&chart.x));
    for (i, series) in chart.series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let path: Vec<String> = series.points.iter().map(|p| format!("{:.1} {:.1}", at_x(p.0), at_y(p.1))).collect();
        if !path.is_empty() {
            let _ =
                writeln!(out, "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join("L"));
        }
        for (x, y) in &series.points {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}: {x}, {y:.2}</title></circle>",
                at_x(*x),
                at_y(*y),
                escaped(&series.name)
            );
        }
    }
}

/// A distance of 1, 2 or 5 times a power of ten, so that three to five marks reach the highest value.
fn tick(highest: f64) -> f64 {
    if highest <= 0.0 {
        return 1.0;
    }
    let raw = highest / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= raw * 0.999).unwrap_or(10.0);
    factor * power
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_numbers() {
        for (highest, step) in [(1.0, 0.2), (38.5, 10.0), (321.0, 100.0), (0.07, 0.02), (5.0, 1.0), (0.0, 1.0)] {
            assert!((tick(highest) - step).abs() < 1e-9, "{highest}: {}", tick(highest));
        }
    }

    #[test]
    fn points_are_where_their_values_are() {
        let points = vec![(5.0, 0.0), (10.0, 5.0), (20.0, 10.0)];
        let chart = |series| Chart { title: "a < b".into(), x: "at a time".into(), series };
        let drawn = svg(&[chart(vec![Series { name: "10 & more".into(), points }]), chart(vec![])]);
        // The lowest at the bottom of the frame, the highest at its top: 10 is a mark.
        assert!(drawn.contains("M72.0 272.0L"), "{drawn}");
        assert!(drawn.contains("L412.0 40.0\""), "{drawn}");
        // A third of the way in x (5 of 15), half in y.
        assert!(drawn.contains("L185.3 156.0L"), "{drawn}");
        assert!(drawn.contains("a &lt; b") && drawn.contains("10 &amp; more") && !drawn.contains("NaN"));
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert_eq!(drawn.matches("<g ").count(), drawn.matches("</g>").count());
    }

    #[test]
    fn one_point_is_drawn_too() {
        let series = vec![Series { name: "1".into(), points: vec![(3.0, 0.4)] }];
        let drawn = svg(&[Chart { title: String::new(), x: String::new(), series }]);
        assert!(drawn.contains("<circle") && !drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
