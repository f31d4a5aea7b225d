//! Curves as SVG: a picture that opens anywhere, without a network and without a font of its own.

use std::fmt::Write;

/// Named points of one curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Points from left to right; those that are not finite leave a gap.
    pub points: Vec<(f64, f64)>,
}

/// Curves over a common axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Written above the picture.
    pub title: String,
    /// Written below it.
    pub x_label: String,
    /// The curves.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
/// Left, right, top, bottom.
const MARGIN: [f64; 4] = [64.0, 16.0, 40.0, 44.0];
/// Colours that are told apart by most eyes (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];
/// A curve is drawn with no more points than the picture has columns.
const MAX_POINTS: usize = 720;

/// The range of an axis and where its lines are.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Covers all values with some four to eight lines at round numbers.
    fn over(values: impl Iterator<Item = f64>) -> Axis {
        let (mut low, mut high) = values
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if high - low < 1e-12 * high.abs().max(1e-300) {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
            (low, high) = (low - room, high + room);
        }
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough);
        Axis { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    fn place(&self, value: f64, from: f64, to: f64) -> f64 {
        from + (value - self.low) / (self.high - self.low) * (to - from)
    }

    fn lines(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|k| self.low + k as f64 * self.step)
    }

    /// A number with as many digits as the lines need to be told apart.
    fn label(&self, value: f64) -> String {
        if value == 0.0 || (1e-4..1e6).contains(&value.abs()) || self.step >= 1e-4 && value.abs() < 1e6 {
            let digits = (-self.step.log10().floor()).clamp(0.0, 8.0) as usize;
            format!("{value:.digits$}")
        } else {
            format!("{value:.1e}")
        }
    }
}

impl Chart {
    /// The picture as a document of its own, which may also stand inside a page.
    pub fn to_svg(&self) -> String {
        let points =
            || self.series.iter().flat_map(|s| &s.points).filter(|p| p.0.is_finite() && p.1.is_finite());
        let (x, y) = (Axis::over(points().map(|p| p.0)), Axis::over(points().map(|p| p.1)));
        let [left, right, top, bottom] = [MARGIN[0], WIDTH - MARGIN[1], MARGIN[2], HEIGHT - MARGIN[3]];
        let mut out = String::new();
        let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a string takes everything");
        put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"system-ui, \
             sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{left}\" y=\"22\" font-size=\"14\" font-weight=\"600\">{}</text>\n",
            escaped(&self.title)
        ));
        for value in y.lines() {
            let at = y.place(value, bottom, top);
            put(format_args!(
                "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#e2e2e2\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\" fill=\"#555\">{}</text>\n",
                left - 8.0,
                at + 4.0,
                y.label(value)
            ));
        }
        for value in x.lines() {
            let at = x.place(value, left, right);
            put(format_args!(
                "<path d=\"M{at:.1} {bottom}v5\" stroke=\"#999\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\" fill=\"#555\">{}</text>\n",
                bottom + 18.0,
                x.label(value)
            ));
        }
        put(format_args!(
            "<path d=\"M{left} {bottom}H{right}\" stroke=\"#999\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\" fill=\"#555\">{}</text>\n",
            (left + right) / 2.0,
            HEIGHT - 8.0,
            escaped(&self.x_label)
        ));
        let mut legend = right;
        for (k, series) in self.series.iter().enumerate().rev() {
            let colour = COLOURS[k % COLOURS.len()];
            let path =
                path(&thinned(&series.points), |p| (x.place(p.0, left, right), y.place(p.1, bottom, top)));
            put(format_args!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" \
                 stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n"
            ));
            put(format_args!(
                "<text x=\"{legend:.1}\" y=\"22\" text-anchor=\"end\" fill=\"{colour}\" font-weight=\"600\">{}\
                 </text>\n",
                escaped(&series.name)
            ));
            legend -= 16.0 + 7.5 * series.name.chars().count() as f64;
        }
        put(format_args!("</svg>\n"));
        out
    }
}

/// Charts below each other, as one picture.
pub fn stacked(charts: &[Chart]) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\">\n",
        HEIGHT * charts.len().max(1) as f64
    );
    for (k, chart) in charts.iter().enumerate() {
        let y = HEIGHT * k as f64;
        out += &chart.to_svg().replacen("<svg ", &format!("<svg y=\"{y}\" height=\"{HEIGHT}\" "), 1);
    }
    out + "</svg>\n"
}

/// The curve as an SVG path; a gap where a point is missing. A point alone is a dot.
fn path(points: &[(f64, f64)], place: impl Fn((f64, f64)) -> (f64, f64)) -> String {
    let mut out = String::new();
    let mut drawing = false;
    for &p in points {
        if !(p.0.is_finite() && p.1.is_finite()) {
            drawing = false;
            continue;
        }
        let (x, y) = place(p);
        let _ = if drawing { write!(out, "L{x:.1} {y:.1}") } else { write!(out, "M{x:.1} {y:.1}h0") };
        drawing = true;
    }
    out
}

/// At most [`MAX_POINTS`] means of neighbours.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let together = points.len().div_ceil(MAX_POINTS).max(1);
    points
        .chunks(together)
        .map(|c| {
            let n = c.len() as f64;
            (c.iter().map(|p| p.0).sum::<f64>() / n, c.iter().map(|p| p.1).sum::<f64>() / n)
        })
        .collect()
}

/// Text as it may stand in XML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_round_numbers_that_cover_everything() {
        for (values, low, high, step) in [
            ([0.0, 1.0], 0.0, 1.0, 0.2),
            ([0.13, 4.7], 0.0, 5.0, 1.0),
            ([-3.0, 1200.0], -500.0, 1500.0, 500.0),
        ] {
            let axis = Axis::over(values.into_iter());
            assert!(
                (axis.low - low).abs() < 1e-9 && (axis.high - high).abs() < 1e-9,
                "{} {}",
                axis.low,
                axis.high
            );
            assert!((axis.step - step).abs() < 1e-9, "{}", axis.step);
        }
    }

    #[test]
    fn a_constant_nothing_and_what_is_not_finite_can_be_drawn() {
        for points in
            [vec![(1.0, 2.0)], vec![], vec![(0.0, f64::NAN), (1.0, 1.0), (2.0, f64::INFINITY), (3.0, 0.0)]]
        {
            let series = vec![Series { name: "a<b".into(), points }];
            let svg = Chart { title: "t & u".into(), x_label: "step".into(), series }.to_svg();
            assert!(svg.contains("a&lt;b") && svg.contains("t &amp; u") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn a_gap_starts_the_path_anew() {
        let path = path(&[(0.0, 0.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0)], |p| p);
        assert_eq!(path, "M0.0 0.0h0L1.0 1.0M3.0 3.0h0");
    }

    #[test]
    fn long_curves_are_thinned_to_means() {
        let points: Vec<(f64, f64)> = (0..7200).map(|k| (f64::from(k), 1.0)).collect();
        let thin = thinned(&points);
        assert_eq!((thin.len(), thin[0]), (720, (4.5, 1.0)));
    }
}
