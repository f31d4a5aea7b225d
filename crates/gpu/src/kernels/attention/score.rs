//! From products of queries and keys to scores: scale, mask and causality, for the cells of a thread.

use super::block::Block;
use std::fmt::Write;

impl Block<'_> {
    /// Makes scores of the products `s` where the own rows are queries: scales them and adds the mask.
    pub fn finish_scores(&self) -> String {
        let (p, t) = (self.problem, &self.tiling);
        let mut text = String::new();
        for (i, n) in self.cells() {
            _ = writeln!(text, "s_{i}_{n} *= {};", p.scale);
            let Some(mask) = &p.mask else { continue };
            // What is read beyond the edge is not used, but must be there.
            let row = format!("min(first + down * {}u + {i}u, {}u)", t.thread_rows, p.queries - 1);
            let column = format!("other + ({}) * 4u", self.column_quad(n));
            if mask.aligned {
                let quad = format!("min({column}, {}u) / 4u", p.keys - 4);
                _ = writeln!(text, "s_{i}_{n} += {};", mask.quad(&row, &quad));
            } else {
                for c in 0..4 {
                    let column = format!("min({column} + {c}u, {}u)", p.keys - 1);
                    _ = writeln!(text, "s_{i}_{n}[{c}] += {};", mask.element(&row, &column));
                }
            }
        }
        text
    }

    /// The same where the own rows are keys.
    pub fn finish_turned_scores(&self) -> String {
        let (p, t) = (self.problem, &self.tiling);
        let mut text = String::new();
        for (i, n) in self.cells() {
            _ = writeln!(text, "s_{i}_{n} *= {};", p.scale);
            let Some(mask) = &p.mask else { continue };
            let key = format!("min(first + down * {}u + {i}u, {}u)", t.thread_rows, p.keys - 1);
            for c in 0..4 {
                let query = format!("min(other + ({}) * 4u + {c}u, {}u)", self.column_quad(n), p.queries - 1);
                _ = writeln!(text, "s_{i}_{n}[{c}] += {};", mask.element(&query, &key));
            }
        }
        text
    }

    /// Where the own rows are queries: puts `value` in place of `s` where a key does not exist or may not be
    /// seen.
    pub fn hide(&self, value: &str) -> String {
        let (p, t) = (self.problem, &self.tiling);
        let mut edges = Vec::new();
        if !p.keys.is_multiple_of(t.other) {
            edges.push(format!("other + {}u > {}u", t.other, p.keys));
        }
        if p.causal {
            edges.push(format!("other + {}u > first + 1u", t.other));
        }
        if edges.is_empty() {
            return String::new();
        }
        let mut text = format!("if ({}) {{\n", edges.join(" || "));
        text += &self.columns();
        for (i, n) in self.cells() {
            let limit = if p.causal {
                format!("min({}u, first + down * {}u + {}u)", p.keys, t.thread_rows, i + 1)
            } else {
                format!("{}u", p.keys)
            };
            _ = writeln!(
                text,
                "s_{i}_{n} = select(vec4<f32>({value}), s_{i}_{n}, column_{n} < vec4<u32>({limit}));"
            );
        }
        text + "}\n"
    }

    /// Where the own rows are keys: the same for queries that may not see them.
    pub fn hide_turned(&self, value: &str) -> String {
        let (p, t) = (self.problem, &self.tiling);
        if !p.causal {
            return String::new();
        }
        let mut text = format!("if (other < first + {}u) {{\n", t.own);
        text += &self.columns();
        for (i, n) in self.cells() {
            let key = format!("first + down * {}u + {i}u", t.thread_rows);
            _ = writeln!(
                text,
                "s_{i}_{n} = select(vec4<f32>({value}), s_{i}_{n}, column_{n} >= vec4<u32>({key}));"
            );
        }
        text + "}\n"
    }

    /// Declares how many keys the own queries see together.
    pub fn seen(&self) -> String {
        let (keys, own) = (self.problem.keys, self.tiling.own);
        if self.problem.causal {
            format!("let seen = min({keys}u, first + {own}u);\n")
        } else {
            format!("let seen = {keys}u;\n")
        }
    }

    /// Declares the largest score of every row, `top_i`.
    pub fn tops(&self) -> String {
        let tops: Vec<String> = (0..self.tiling.thread_rows).map(|i| format!("top_{i}")).collect();
        let mut text = String::new();
        for (i, top) in tops.iter().enumerate() {
            let most = (0..self.tiling.thread_quads).map(|n| format!("s_{i}_{n}"));
            let most = most.reduce(|a, b| format!("max({a}, {b})")).expect("a quad");
            _ = writeln!(text, "let most_{i} = {most};");
            _ = writeln!(text, "var {top} = max(max(most_{i}.x, most_{i}.y), max(most_{i}.z, most_{i}.w));");
        }
        text + &self.fold("max", &tops)
    }

    fn columns(&self) -> String {
        (0..self.tiling.thread_quads)
            .map(|n| {
                let quad = self.column_quad(n);
                format!("let column_{n} = vec4<u32>(other + ({quad}) * 4u) + vec4<u32>(0u, 1u, 2u, 3u);\n")
            })
            .collect()
    }

    /// Writes the thread's cells where all threads can read them as weights.
    pub fn write_weights(&self, name: &str) -> String {
        let weights = self.weights();
        self.cells()
            .map(|(i, n)| format!("{} = {name}_{i}_{n};\n", weights.at("down", i, &self.column_quad(n))))
            .collect()
    }

    /// `statement` for the threads whose quad `n` of a part's sums exists.
    pub fn if_column(&self, parts: super::tiling::Parts, n: usize, statement: &str) -> String {
        if (n + 1) * self.tiling.across() <= parts.quads {
            return statement.to_string();
        }
        format!("if ({} < {}u) {{\n{statement}}}\n", self.column_quad(n), parts.quads)
    }
}
