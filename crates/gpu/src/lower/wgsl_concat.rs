//! Bodies of shaders, taken apart and put together: side by side, where workgroups of one dispatch do the work of several, or
//! one behind the other, where one workgroup does it.

use crate::dispatch::Dispatch;
use std::collections::HashMap;
use std::fmt::Write;

/// What `main` asks for, as it is called in `main` of all.
const BUILTINS: [(&str, &str); 5] = [
    ("workgroup_id", ""),
    ("num_workgroups", ""),
    ("local_invocation_index", "invocation"),
    ("subgroup_id", "subgroup"),
    ("subgroup_invocation_id", "subgroup_place"),
];

/// Workgroups of a dispatch that is done in as many iterations of one workgroup, at most.
const MAX_ITERATIONS: u64 = 4;

/// An array of workgroup memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Array<'a> {
    name: &'a str,
    element: &'a str,
    length: usize,
}

/// The body of a dispatch: arrays, functions, and `main`.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    arrays: Vec<Array<'a>>,
    functions: String,
    pub threads: usize,
    /// Names of builtins, and those that `main` gives them.
    parameters: Vec<(&'a str, &'a str)>,
    main: &'a str,
    groups: u64,
    names: Vec<&'static str>,
}

impl<'a> Parts<'a> {
    /// The parts of a dispatch's body, if it has no others than these.
    pub fn of(dispatch: &'a Dispatch) -> Option<Parts<'a>> {
        let (before, main) = dispatch.body.split_once("@compute @workgroup_size(")?;
        let (threads, main) = main.split_once(')')?;
        let (parameters, main) = main.trim_start().strip_prefix("fn main(")?.split_once(") {")?;
        let main = main.trim_end().strip_suffix('}')?;
        let parameter = |text: &'a str| {
            let (builtin, rest) = text.trim().strip_prefix("@builtin(")?.split_once(')')?;
            let name = rest.split(':').next()?.trim();
            BUILTINS.iter().any(|(known, _)| *known == builtin).then_some((builtin, name))
        };
        let parameters = parameters.split(',').filter(|p| !p.trim().is_empty());
        let (mut arrays, mut functions) = (Vec::new(), String::new());
        for line in before.lines() {
            if let Some(array) = line.strip_prefix("var<workgroup> ") {
                arrays.push(Array::of(array)?);
            } else if ["var", "const", "struct", "alias", "override"].iter().any(|w| line.starts_with(w)) {
                return None;
            } else {
                functions += line;
                functions.push('\n');
            }
        }
        Some(Parts {
            arrays,
            functions,
            threads: threads.parse().ok()?,
            parameters: parameters.map(parameter).collect::<Option<_>>()?,
            main,
            groups: dispatch.groups,
            names: dispatch.bindings.iter().map(|b| b.name).collect(),
        })
    }

    /// Whether one workgroup can do it all: several iterations of those that share nothing among their threads.
    pub fn is_for_one(&self) -> bool {
        self.groups == 1
            || (self.groups <= MAX_ITERATIONS
                && self.arrays.is_empty()
                && [self.main, &self.functions].iter().all(|text| !text.contains("arrier(")))
    }

    /// What it asks for, where the workgroup and their number are these.
    fn values(&self, group: &str) -> impl Iterator<Item = (&'a str, String)> {
        let groups = self.groups;
        self.parameters.iter().map(move |&(builtin, name)| {
            let value = match builtin {
                "workgroup_id" => format!("vec3<u32>({group}, 0u, 0u)"),
                "num_workgroups" => format!("vec3<u32>({groups}u, 1u, 1u)"),
                other => BUILTINS.iter().find(|(b, _)| *b == other).expect("one of them").1.to_string(),
            };
            (name, value)
        })
    }
}

impl<'a> Array<'a> {
    /// Of `NAME: array<ELEMENT, LENGTH>;`.
    fn of(text: &'a str) -> Option<Array<'a>> {
        let (name, ty) = text.split_once(':')?;
        let (element, length) = ty.trim().strip_prefix("array<")?.strip_suffix(">;")?.rsplit_once(',')?;
        let array = Array { name: name.trim(), element, length: length.trim().parse().ok()? };
        array.element_bytes().map(|_| array)
    }

    fn element_bytes(&self) -> Option<usize> {
        let (scalar, count) = match self.element.strip_suffix('>').and_then(|e| e.split_once('<')) {
            Some((vector, scalar)) => (scalar, vector.strip_prefix("vec")?.parse::<usize>().ok()?),
            None => (self.element, 1),
        };
        let size = match scalar {
            "f32" | "i32" | "u32" => 4,
            "f16" => 2,
            "i64" => 8,
            _ => return None,
        };
        // Three take the room of four.
        Some(size * count.next_power_of_two())
    }
}

/// What the name of a binding of that part becomes.
pub(super) fn tagged(part: usize, name: &str) -> String {
    format!("p{part}_{name}")
}

/// Arrays that serve all parts, each of which has as many of a type as it asks for.
fn share_arrays<'a>(parts: &[Parts<'a>]) -> (Vec<Array<'a>>, Vec<HashMap<&'a str, String>>) {
    let mut shared: Vec<Array> = Vec::new();
    let mut names = Vec::new();
    for part in parts {
        let (mut used, mut renamed) = (vec![false; shared.len()], HashMap::new());
        for array in &part.arrays {
            let free = (0..shared.len()).find(|&k| !used[k] && shared[k].element == array.element);
            let k = free.unwrap_or_else(|| {
                shared.push(*array);
                used.push(false);
                shared.len() - 1
            });
            used[k] = true;
            shared[k].length = shared[k].length.max(array.length);
            renamed.insert(array.name, format!("shared{k}"));
        }
        names.push(renamed);
    }
    (shared, names)
}

/// Bytes of workgroup memory that these parts need together.
pub(super) fn shared_bytes(parts: &[Parts]) -> usize {
    let bytes = |array: &Array| array.length * array.element_bytes().expect("known since it was parsed");
    share_arrays(parts).0.iter().map(bytes).sum()
}

/// The body of a dispatch whose workgroups do the work of all, side by side. Each part finds its arguments behind so many
/// fours of words. What few workgroups do takes them long: so they begin.
pub(super) fn joint_body(parts: &[Parts], arguments: &[usize]) -> String {
    let (text, mains) = renamed_parts(parts, arguments);
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&p| parts[p].groups);
    let (mut cases, mut first) = (String::new(), 0);
    for (n, &p) in order.iter().enumerate() {
        let end = first + parts[p].groups;
        let is_last = n + 1 == parts.len();
        if !is_last {
            let _ = write!(cases, "if (dispatched.x < {end}u) ");
        }
        cases += "{\n";
        for (name, value) in parts[p].values(&format!("dispatched.x - {first}u")) {
            let _ = writeln!(cases, "let {name} = {value};");
        }
        cases += mains[p].trim_start_matches('\n');
        cases += if is_last { "}\n" } else { "} else " };
        first = end;
    }
    text + &main_of(parts, &["@builtin(workgroup_id) dispatched: vec3<u32>".to_string()], &cases)
}

/// The body of a dispatch whose only workgroup does the work of all, one behind the other.
pub(super) fn body_in_order(parts: &[Parts], arguments: &[usize]) -> String {
    let (mut text, mains) = renamed_parts(parts, arguments);
    let mut calls = String::new();
    for (p, (part, main)) in parts.iter().zip(mains).enumerate() {
        let function = tagged(p, "main");
        let typed = |&(builtin, name): &(&str, &str)| {
            let is_number = BUILTINS.iter().any(|(known, called)| *known == builtin && !called.is_empty());
            format!("{name}: {}", if is_number { "u32" } else { "vec3<u32>" })
        };
        let parameters: Vec<String> = part.parameters.iter().map(typed).collect();
        let _ = writeln!(text, "fn {function}({}) {{{main}}}", parameters.join(", "));
        if p > 0 {
            // What the one before has written is there for all threads, and the memory they share is free.
            calls += "storageBarrier();\nworkgroupBarrier();\n";
        }
        let group = if part.groups == 1 { "0u" } else { "turn" };
        let values: Vec<String> = part.values(group).map(|(_, value)| value).collect();
        let call = format!("{function}({});", values.join(", "));
        let _ = match part.groups {
            1 => writeln!(calls, "{call}"),
            iterations => writeln!(calls, "for (var turn = 0u; turn < {iterations}u; turn++) {{\n{call}\n}}"),
        };
    }
    text + &main_of(parts, &[], &calls)
}

/// What all parts declare, and `main` of each, with names that are not those of the others.
fn renamed_parts(parts: &[Parts], arguments: &[usize]) -> (String, Vec<String>) {
    let (arrays, array_names) = share_arrays(parts);
    let mut text = String::new();
    for (k, Array { element, length, .. }) in arrays.iter().enumerate() {
        let _ = writeln!(text, "var<workgroup> shared{k}: array<{element}, {length}>;");
    }
    let mut mains = Vec::new();
    for (p, (part, mut names)) in parts.iter().zip(array_names).enumerate() {
        for name in functions_of(&part.functions) {
            names.insert(name, tagged(p, name));
        }
        let accessors: Vec<(String, String)> =
            part.names.iter().flat_map(|name| accessors(p, name)).collect();
        names.extend(accessors.iter().map(|(old, new)| (old.as_str(), new.clone())));
        text += &renamed(&part.functions, &names, arguments[p]);
        mains.push(renamed(part.main, &names, arguments[p]));
    }
    (text, mains)
}

/// `main` of all, with the numbers that any of them asks for.
fn main_of(parts: &[Parts], parameters: &[String], main: &str) -> String {
    let asked = |builtin: &str| parts.iter().any(|p| p.parameters.iter().any(|(b, _)| *b == builtin));
    let numbers = BUILTINS.iter().filter(|(builtin, name)| !name.is_empty() && asked(builtin));
    let numbers = numbers.map(|(builtin, name)| format!("@builtin({builtin}) {name}: u32"));
    let parameters: Vec<String> = parameters.iter().cloned().chain(numbers).collect();
    let (threads, parameters) = (parts[0].threads, parameters.join(", "));
    format!("@compute @workgroup_size({threads})\nfn main({parameters}) {{\n{main}}}\n")
}

/// The functions that read and write the memory called `name`, and what they are called for a part.
fn accessors(part: usize, name: &str) -> impl Iterator<Item = (String, String)> {
    let verbs = ["load", "load4", "load8", "store", "store4", "store8"];
    let new = tagged(part, name);
    verbs.into_iter().map(move |verb| (format!("{verb}_{name}"), format!("{verb}_{new}")))
}

fn functions_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("fn ")?.split('(').next())
}

/// `text` with other names, and with `arguments` from another place on.
fn renamed(text: &str, names: &HashMap<&str, String>, arguments: usize) -> String {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut new, mut rest) = (String::with_capacity(2 * text.len()), text);
    while let Some(start) = rest.find(in_word) {
        let length = rest[start..].find(|c| !in_word(c)).unwrap_or(rest.len() - start);
        let (word, behind) = rest[start..].split_at(length);
        new += &rest[..start];
        let is_member = new.ends_with('.');
        match names.get(word).filter(|_| !is_member) {
            Some(name) => new += name,
            None => new += word,
        }
        rest = behind;
        if word == "arguments" && arguments > 0 && rest.starts_with('[') {
            let _ = write!(new, "[{arguments}u + ");
            rest = &rest[1..];
        }
    }
    new + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch(body: &str, groups: u64) -> Dispatch {
        Dispatch { body: body.into(), bindings: Vec::new(), groups }
    }

    #[test]
    fn names_are_changed_as_whole_words_that_are_no_members() {
        let names = HashMap::from([("load_a", "load_p1_a".to_string()), ("x", "y".to_string())]);
        let new = renamed("load_a(x.x) + load_aa(arguments[1].x) + max", &names, 2);
        assert_eq!(new, "load_p1_a(y.x) + load_aa(arguments[2u + 1].x) + max");
        assert_eq!(renamed("arguments[1]", &names, 0), "arguments[1]");
    }

    #[test]
    fn arrays_of_a_type_serve_all_parts() {
        let main = "@compute @workgroup_size(64)\nfn main(@builtin(workgroup_id) wg: vec3<u32>) {\n}\n";
        let declared = |arrays: &[&str]| {
            let lines: Vec<String> = arrays.iter().map(|a| format!("var<workgroup> {a};\n")).collect();
            dispatch(&(lines.concat() + main), 1)
        };
        let all = [
            declared(&["a: array<vec4<f32>, 100>", "b: array<vec4<f32>, 20>", "c: array<u32, 3>"]),
            declared(&["b: array<vec4<f32>, 50>", "a: array<vec4<f32>, 60>"]),
        ];
        let parts: Vec<Parts> = all.iter().map(|d| Parts::of(d).expect("it has these parts")).collect();
        assert_eq!(shared_bytes(&parts), 16 * (100 + 60) + 4 * 3);
        let odd = ["a: atomic<u32>", "a: array<atomic<u32>, 3>", "a: array<f32, SIZE>"];
        assert!(odd.iter().all(|array| Parts::of(&declared(&[array])).is_none()));
        assert!(Parts::of(&dispatch(&format!("const K = 3u;\n{main}"), 1)).is_none());
        assert!(Parts::of(&dispatch(&main.replace("workgroup_id", "local_invocation_id"), 1)).is_none());
    }
}
