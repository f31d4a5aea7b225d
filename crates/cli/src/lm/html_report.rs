//! One page about a run: curves, profile, samples and configuration. It opens without a network.

use super::clock::span;
use super::report::Times;
use std::fmt::Write;
use volta::train::{History, escaped};

/// What the page shows.
pub struct Page<'a> {
    pub name: &'a str,
    pub date: &'a str,
    pub summary: &'a str,
    pub history: &'a History,
    pub times: &'a Times,
    /// Steps and what the model wrote after them.
    pub samples: &'a [(u64, String)],
    pub config: &'a str,
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}svg{width:100%;height:auto;border:1px solid #eee;\
border-radius:6px;margin:.4rem 0}pre{background:#f6f6f4;padding:.8rem;border-radius:6px;white-space:pre-wrap;\
font-size:.85rem}table{border-collapse:collapse}td,th{padding:.2rem 1rem .2rem 0;text-align:left}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.bar{background:#0072b2;height:.8rem;border-radius:2px}";

impl Page<'_> {
    /// The page as HTML.
    pub fn html(&self) -> String {
        let mut out = String::new();
        let mut put = |text: String| out.push_str(&text);
        put(format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<title>{0}</title>\n<style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n\
             <p>{1} UTC. {2}</p>\n",
            escaped(self.name),
            escaped(self.date),
            escaped(self.summary)
        ));
        put("<h2>Curves</h2>\n".into());
        self.history.charts().iter().for_each(|chart| put(chart.to_svg()));
        put(self.profile());
        put("<h2>Samples</h2>\n".into());
        for (step, text) in self.samples {
            put(format!("<h3>After step {step}</h3>\n<pre>{}</pre>\n", escaped(text)));
        }
        put(format!("<h2>Configuration</h2>\n<pre>{}</pre>\n</body></html>\n", escaped(self.config)));
        out
    }

    fn profile(&self) -> String {
        let t = self.times;
        let mut out = format!(
            "<h2>Where the time went</h2>\n<p>{} steps in {}, {:.0} tokens a second; peak memory of a step {:.1} MB; \
             waiting for data {}.</p>\n<table>\n",
            t.steps,
            span(t.training),
            t.tokens_per_second(),
            t.peak_bytes as f64 / 1e6,
            span(t.waiting)
        );
        for (name, time, share) in t.parts() {
            let _ = writeln!(
                out,
                "<tr><td>{name}</td><td class=\"n\">{}</td><td class=\"n\">{:.1}%</td>\
                 <td style=\"width:20rem\"><div class=\"bar\" style=\"width:{:.1}%\"></div></td></tr>",
                span(time),
                100.0 * share,
                100.0 * share
            );
        }
        out + "</table>\n"
    }
}
