//! Profiles: times by kernel and by op, peaks, and the trace file.

use std::collections::BTreeMap;
use volta::{Device, Profile, Tensor, default_device, measure_peak, profile};
use volta_testing::test;

/// Just enough of JSON to read a trace back.
#[derive(Debug, PartialEq)]
enum Json {
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn peek(&mut self) -> char {
        self.rest = self.rest.trim_start();
        self.rest.chars().next().expect("more text")
    }

    fn expect(&mut self, c: char) {
        assert_eq!(self.peek(), c, "at {:.40}", self.rest);
        self.rest = &self.rest[c.len_utf8()..];
    }

    /// Items up to `end`, with commas between them.
    fn items(&mut self, end: char, mut item: impl FnMut(&mut Self)) {
        while self.peek() != end {
            item(self);
            if self.peek() != end {
                self.expect(',');
                assert_ne!(self.peek(), end, "a comma before the end");
            }
        }
        self.expect(end);
    }

    fn text(&mut self) -> String {
        self.expect('"');
        let mut text = String::new();
        loop {
            let c = self.rest.chars().next().expect("the string ends");
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '"' => return text,
                '\\' if self.rest.starts_with('u') => {
                    let code = u32::from_str_radix(&self.rest[1..5], 16).expect("four digits");
                    text.push(char::from_u32(code).expect("a character"));
                    self.rest = &self.rest[5..];
                }
                '\\' => {
                    let c = self.rest.chars().next().filter(|c| "\"\\/".contains(*c)).expect("an escape");
                    text.push(c);
                    self.rest = &self.rest[1..];
                }
                c => {
                    assert!(c >= ' ', "a bare control character");
                    text.push(c);
                }
            }
        }
    }

    fn value(&mut self) -> Json {
        match self.peek() {
            '{' => {
                self.expect('{');
                let mut all = BTreeMap::new();
                self.items('}', |r| {
                    let key = r.text();
                    r.expect(':');
                    assert!(all.insert(key, r.value()).is_none(), "a key twice");
                });
                Json::Object(all)
            }
            '[' => {
                self.expect('[');
                let mut all = Vec::new();
                self.items(']', |r| all.push(r.value()));
                Json::List(all)
            }
            '"' => Json::Text(self.text()),
            _ => {
                let end = self.rest.find(|c: char| !"+-.eE0123456789".contains(c)).expect("an end");
                let (number, rest) = self.rest.split_at(end);
                self.rest = rest;
                Json::Number(number.parse().expect("a number"))
            }
        }
    }
}

impl Json {
    fn read(text: &str) -> Json {
        let mut reader = Reader { rest: text };
        let value = reader.value();
        assert_eq!(reader.rest.trim(), "", "nothing follows");
        value
    }

    fn get(&self, key: &str) -> &Json {
        let Json::Object(all) = self else { panic!("no object: {self:?}") };
        all.get(key).unwrap_or_else(|| panic!("no {key} in {all:?}"))
    }

    fn text(&self) -> &str {
        let Json::Text(text) = self else { panic!("no text: {self:?}") };
        text
    }

    fn number(&self) -> f64 {
        let Json::Number(number) = self else { panic!("no number: {self:?}") };
        *number
    }

    fn list(&self) -> &[Json] {
        let Json::List(list) = self else { panic!("no list: {self:?}") };
        list
    }
}

/// A step of a small network, profiled. Its plan is new if the number of rows is.
fn profiled(rows: usize) -> Profile {
    let x = Tensor::rand([rows, 32]).realize().clone();
    let w = (Tensor::rand([32, 16]) - 0.5).realize().requires_grad(true);
    let (_, profile) = profile(|| {
        x.matmul(&w).softmax(-1).square().sum().backward();
        w.grad().expect("a gradient").to_vec::<f32>()
    });
    profile
}

#[test]
fn ops_are_reported_by_name_forward_and_gradient_apart() {
    let profile = profiled(64);
    let report = profile.by_op();
    let find = |name: &str| report.ops.iter().find(|op| op.name == name);
    for name in ["matmul", "gradient of matmul", "softmax", "gradient of softmax"] {
        let op = find(name).unwrap_or_else(|| panic!("{name} is missing:\n{report}"));
        assert!(op.calls > 0 && op.flops > 0 && op.bytes > 0, "{op:?}");
        assert_eq!(op.device, default_device());
    }
    // The gradient for the weights alone has 2 · 64 · 32 · 16 of them.
    assert!(find("gradient of matmul").is_some_and(|op| op.flops >= 65_000), "{report}");
    // All time, arithmetic and traffic is somebody's.
    let shared: f64 = report.ops.iter().map(|op| op.time.as_secs_f64()).sum();
    assert!((shared - profile.total().as_secs_f64()).abs() < 1e-6, "{shared} of {:?}", profile.total());
    let flops = |all: &mut dyn Iterator<Item = u64>| all.sum::<u64>() as f64;
    let of_ops = flops(&mut report.ops.iter().map(|op| op.flops));
    let of_kernels = flops(&mut profile.kernels.iter().map(|k| k.flops));
    assert!((of_ops / of_kernels - 1.0).abs() < 1e-3, "{of_ops} of {of_kernels}");
    assert!(report.to_string().contains("gradient of softmax"), "{report}");
}

#[test(needs(more_than_webgpu))]
fn a_peak_is_unknown_until_it_is_measured() {
    let device = default_device();
    let (_, before) = profile(|| Tensor::rand([1000]).exp().to_vec::<f32>());
    // The other tests measure nothing.
    let report = before.by_op();
    assert_eq!(report.share_of_peak(&report.ops[0]), None);
    assert!(report.to_string().contains(&format!("peak of {device}: unknown")), "{report}");
    let peak = measure_peak(device).unwrap();
    assert!(peak.bytes > 1e6 && peak.flops > 1e6, "{peak:?}");
    assert_eq!(measure_peak(device).unwrap(), peak, "it is measured once");
    let report = before.by_op();
    let share = report.share_of_peak(&report.ops[0]).expect("known now");
    assert!(share > 0.0, "{share}");
    assert!(report.to_string().contains("measured by a copy"), "{report}");
}

#[test(needs(more_than_webgpu))]
fn the_trace_has_the_hosts_track_and_the_devices() {
    let file = std::env::temp_dir().join(format!("volta-trace-{}.json", std::process::id()));
    let profile = profiled(48);
    profile.write_trace(&file).unwrap();
    let trace = Json::read(&std::fs::read_to_string(&file).unwrap());
    std::fs::remove_file(&file).unwrap();
    let events = trace.get("traceEvents").list();
    let is = |event: &&Json, phase: &str| event.get("ph").text() == phase;
    let mut threads = BTreeMap::new();
    for event in events.iter().filter(|e| is(e, "M") && e.get("name").text() == "thread_name") {
        threads.insert(event.get("tid").number() as i64, event.get("args").get("name").text());
    }
    let names: Vec<&str> = threads.values().copied().collect();
    assert_eq!(names, ["host", &default_device().to_string()]);
    let spans: Vec<&Json> = events.iter().filter(|e| is(e, "X")).collect();
    let on = |event: &Json| threads[&(event.get("tid").number() as i64)];
    let mut wanted = vec!["capture", "plan", "prepare", "run"];
    if default_device().is_gpu() {
        wanted.extend(["submit", "wait"]);
    }
    for name in wanted {
        let there = spans.iter().any(|e| on(e) == "host" && e.get("name").text() == name);
        assert!(there, "{name} is missing");
    }
    let kernels: Vec<&&Json> = spans.iter().filter(|e| on(e) != "host").collect();
    let calls: u64 = profile.kernels.iter().map(|k| k.calls).sum();
    assert!(kernels.len() as u64 >= calls, "every kernel is there");
    for kernel in &kernels {
        assert!(kernel.get("ts").number() >= 0.0 && kernel.get("dur").number() >= 0.0);
        assert!(profile.kernels.iter().any(|k| k.label == kernel.get("name").text()));
        assert!(kernel.get("args").get("bytes").number() > 0.0);
    }
    // One after the other.
    let mut ends = 0.0;
    for kernel in &kernels {
        assert!(kernel.get("ts").number() >= ends - 0.01, "kernels overlap");
        ends = kernel.get("ts").number() + kernel.get("dur").number();
    }
    let error = profile.write_trace("/no/such/folder/trace.json").unwrap_err();
    assert_eq!(error.kind(), volta::ErrorKind::Io);
}

/// More dispatches than one set of timestamps has room for, and kernels of which nobody knows the time.
#[test]
fn every_kernel_is_timed_or_counted() {
    let (_, profile) = profile(|| {
        let x = Tensor::rand([4]).realize().clone();
        let all: Vec<Tensor> = (1..2100).map(|n| x.cumsum(0) * n).collect();
        volta::realize_all(&all);
        all[9].to_vec::<f32>()
    });
    let calls: u64 = profile.kernels.iter().map(|k| k.calls).sum();
    assert!(calls >= 2100, "{calls}");
    assert!(profile.untimed == 0 || profile.untimed == calls, "{calls} and {}", profile.untimed);
    assert_eq!(profile.total().is_zero(), profile.untimed > 0, "{profile}");
    assert!(profile.kernels.iter().all(|k| k.bytes > 0), "{profile}");
    let said = [profile.to_string(), profile.by_op().to_string()];
    assert!(said.iter().all(|text| text.contains("no clock") == (profile.untimed > 0)), "{profile}");
}

#[test]
fn the_cpu_is_profiled_wherever_the_default_is() {
    let (_, profile) =
        volta::with_device(Device::Cpu, || profile(|| Tensor::rand([100]).exp().to_vec::<f32>()));
    assert!(profile.by_op().ops.iter().all(|op| op.device == Device::Cpu));
    assert!(!profile.kernels.is_empty());
}

/// What the layers of a network took, by their names.
#[test]
fn every_layer_is_an_entry_and_all_time_is_shared_out() {
    use volta::nn::by_module;
    use volta::{Linear, Module, ReLU, SGD, Sequential, mse_loss};
    let model = Sequential::new(vec![
        Box::new(Linear::new(24, 48, true)),
        Box::new(ReLU),
        Box::new(Linear::new(48, 8, true)),
    ]);
    let x = Tensor::randn([16, 24]);
    let mut optimizer = SGD::new(model.parameters(), 0.1, 0.0, 0.0);
    let mut step = || {
        optimizer.zero_grad();
        mse_loss(&model.forward(&x), &Tensor::zeros([16, 8])).backward();
        optimizer.step();
    };
    step();
    let (_, profile) = profile(step);
    let report = by_module(&profile, &model);
    let entry = |name: &str| report.ops.iter().find(|op| op.name == name).map(|op| op.flops);
    let (first, second) = (entry("0 (Linear)").expect("the first"), entry("2 (Linear)").expect("the second"));
    assert!(entry("outside of the model").is_some(), "{report}");
    // Forward, and the gradient of the weight; the second one has that of its input too.
    assert!(first >= 2 * 2 * 16 * 24 * 48 && second >= 3 * 2 * 16 * 48 * 8, "{report}");
    let shared: std::time::Duration = report.ops.iter().map(|op| op.time).sum();
    let difference = shared.as_secs_f64() - profile.total().as_secs_f64();
    assert!(difference.abs() < 1e-6, "{report}");
    let text = report.to_string();
    assert!(text.lines().next().is_some_and(|head| head.ends_with("module")), "{text}");
}

volta_testing::main!();
