//! A line chart as SVG, by hand: axes, grid, legend.

use std::fmt::Write;

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    Line,
    Dashes,
    Dots,
}

pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) color: &'static str,
    pub(crate) mark: Mark,
    pub(crate) points: Vec<(f64, f64)>,
}

pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) series: Vec<Series>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 416.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 52.0;

/// The end of an axis that starts at 0, and the distance of its ticks: 1, 2 or 5 times a power of ten.
fn axis(largest: f64) -> (f64, f64) {
    let rough = largest.max(1e-9) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    ((largest / step).ceil() * step, step)
}

/// Attributes of a line.
fn pen(color: &str, mark: Mark) -> String {
    let dashes = if mark == Mark::Dashes { " stroke-dasharray='6 4'" } else { "" };
    format!("stroke='{color}' stroke-width='2' stroke-linejoin='round'{dashes}")
}

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let (x_end, x_step) = axis(points().map(|p| p.0).fold(0.0, f64::max));
        let (y_end, y_step) = axis(points().map(|p| p.1).fold(0.0, f64::max));
        let x = |v: f64| LEFT + v / x_end * (WIDTH - LEFT - RIGHT);
        let y = |v: f64| HEIGHT - BOTTOM - v / y_end * (HEIGHT - TOP - BOTTOM);

        let mut body = String::new();
        let mut push = |line: String| _ = writeln!(body, "{line}");
        let ticks = |end: f64, step: f64| (0..=(end / step).round() as u32).map(move |i| f64::from(i) * step);
        for v in ticks(y_end, y_step) {
            let (x1, x2, y) = (x(0.0), x(x_end), y(v));
            push(format!("<line class='grid' x1='{x1:.1}' y1='{y:.1}' x2='{x2:.1}' y2='{y:.1}'/>"));
            push(format!("<text text-anchor='end' x='{:.1}' y='{:.1}'>{v}</text>", x1 - 8.0, y + 4.0));
        }
        for v in ticks(x_end, x_step) {
            let (x, y) = (x(v), y(0.0));
            push(format!("<line class='axis' x1='{x:.1}' y1='{y:.1}' x2='{x:.1}' y2='{:.1}'/>", y + 5.0));
            push(format!("<text text-anchor='middle' x='{x:.1}' y='{:.1}'>{v}</text>", y + 19.0));
        }
        push(format!("<line class='axis' x1='{0:.1}' y1='{2:.1}' x2='{1:.1}' y2='{2:.1}'/>", x(0.0), x(x_end), y(0.0)));
        for series in &self.series {
            push(series.draw(x, y));
        }
        let (mut legend, mut at) = (LEFT, 46.0);
        for Series { name, color, mark, .. } in &self.series {
            let width = 26.0 + 6.4 * name.len() as f64;
            if legend + width > WIDTH - RIGHT {
                (legend, at) = (LEFT, at + 18.0);
            }
            let (from, to) = (legend, legend + 20.0);
            push(match mark {
                Mark::Dots => format!("<circle cx='{:.1}' cy='{at}' r='4' fill='{color}'/>", (from + to) / 2.0),
                mark => {
                    format!("<line x1='{from:.1}' y1='{at}' x2='{to:.1}' y2='{at}' {}/>", pen(color, *mark))
                }
            });
            push(format!("<text x='{:.1}' y='{:.1}'>{name}</text>", to + 6.0, at + 4.0));
            legend += width + 14.0;
        }
        let (title, x_label, y_label) = (&self.title, &self.x_label, &self.y_label);
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        push(format!("<text class='title' x='{LEFT}' y='26'>{title}</text>"));
        push(format!("<text text-anchor='middle' x='{middle:.1}' y='{:.1}'>{x_label}</text>", HEIGHT - 12.0));
        let center = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
        push(format!("<text text-anchor='middle' transform='translate(16 {center:.1}) rotate(-90)'>{y_label}</text>"));
        let style = "text{font:11px system-ui,sans-serif;fill:#424a53}\
                     .title{font-size:15px;font-weight:600;fill:#1f2328}\
                     .grid{stroke:#d8dee4}.axis{stroke:#6e7781}";
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img'>\n\
             <title>{title}</title>\n\
             <style>{style}</style>\n<rect width='{WIDTH}' height='{HEIGHT}' fill='#fff'/>\n{body}</svg>\n"
        )
    }
}

impl Series {
    fn draw(&self, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
        let (color, mut out) = (self.color, String::new());
        if self.mark == Mark::Dots {
            for (px, py) in &self.points {
                _ = write!(out, "<circle cx='{:.1}' cy='{:.1}' r='4.5' fill='{color}'/>", x(*px), y(*py));
            }
            return out;
        }
        // What lies within a pixel of the last point cannot be seen.
        let mut path: Vec<String> = Vec::new();
        let mut last = (f64::MIN, f64::MIN);
        for (px, py) in self.points.iter().map(|(px, py)| (x(*px), y(*py))) {
            if (px - last.0).abs().max((py - last.1).abs()) >= 1.0 {
                path.push(format!("{px:.0},{py:.0}"));
                last = (px, py);
            }
        }
        format!("<polyline points='{}' fill='none' {}/>", path.join(" "), pen(color, self.mark))
    }
}
