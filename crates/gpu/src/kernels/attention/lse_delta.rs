//! What the backward pass knows of every query: its log-sum-exp, and the sum of its weights times their
//! gradients. The queries' dispatch computes them, or one of their own, and the keys' reads them or, at once with the
//! queries', finds them by itself. And the gradient of the mask, which the queries' dispatch leaves.

use super::backward::Gradient;
use super::block::Block;
use super::coop::{Carried, Coop};
use super::online_exp::Exponent;
use super::output_lse;
use std::fmt::Write;

/// In place of the log-sum-exp of a query that sees nothing: it makes every weight 0.
const HIGHEST: &str = "3.4028234e38";

impl Gradient<'_> {
    /// Computes `lse` and `delta` of the thread's queries and leaves them for the keys' dispatch.
    pub fn statistics_of_rows(&self, b: &Block) -> String {
        let (g, p) = (self, self.problem);
        let rows = b.tiling.thread_rows;
        let deltas: Vec<String> = (0..rows).map(|i| format!("delta_{i}")).collect();
        let quads = p.value_width.div_ceil(4);
        let across = b.tiling.across();
        let mut text = String::new();
        for (i, delta) in deltas.iter().enumerate() {
            _ = writeln!(text, "let row_{i} = first + down * {rows}u + {i}u;\nvar {delta} = 0.0;");
            let (out, grad) =
                (g.out.quad(&format!("row_{i}"), "quad"), g.grad.quad(&format!("row_{i}"), "quad"));
            if quads > 0 {
                _ = writeln!(
                    text,
                    "if (row_{i} < {}u) {{
for (var quad = across; quad < {quads}u; quad += {across}u) {{ {delta} += dot({out}, {grad}); }}
}}",
                    p.queries
                );
            }
        }
        text += &b.fold("sum", &deltas);
        let [lse_to, delta_to] = g.statistics();
        for (i, delta) in deltas.iter().enumerate() {
            let row = format!("row_{i}");
            let (lse_at, delta_at) = (lse_to.at(&row, "0u"), delta_to.at(&row, "0u"));
            let leave = format!(
                "if (across == 0u && slice == 0u) {{
store_statistics({lse_at}, lse_{i});
store_statistics({delta_at}, {delta});
}}
"
            );
            _ = writeln!(
                text,
                "var lse_{i} = {HIGHEST};\nif ({row} < {}u) {{\n{}{}}}",
                p.queries,
                self.known_lse(&format!("lse_{i}"), &row),
                if g.at_once { "" } else { &leave }
            );
        }
        text
    }

    /// Assigns the log-sum-exp of query `row` to `name`.
    fn known_lse(&self, name: &str, row: &str) -> String {
        let lse = output_lse::lse(&self.lse, row);
        format!(
            "let known = {lse};\n{name} = select(known, {HIGHEST}, bitcast<u32>(known) == 0xff800000u);\n"
        )
    }

    /// Threads that find `delta` of a query in the keys' dispatch.
    fn threads_a_query(b: &Block) -> usize {
        b.tiling.threads() / b.tiling.other
    }

    /// Bytes of workgroup memory for their sums.
    pub fn bytes_of_sums(b: &Block) -> usize {
        4 * b.tiling.other * Self::threads_a_query(b)
    }

    pub fn memory_of_sums(b: &Block) -> String {
        format!("var<workgroup> deltas: array<f32, {}>;\n", Self::bytes_of_sums(b) / 4)
    }

    /// Leaves what `delta` of the block's queries is the sum of in `deltas`.
    fn sum_up(&self, b: &Block) -> String {
        let (p, each) = (self.problem, Self::threads_a_query(b));
        let (quads, all) = (p.value_width.div_ceil(4), b.tiling.other * each);
        let mut sum = String::new();
        if quads > 0 {
            let (out, grad) = (self.out.quad("query", "quad"), self.grad.quad("query", "quad"));
            sum = format!(
                "for (var quad = lane % {each}u; quad < {quads}u; quad += {each}u) {{ sum += dot({out}, {grad}); }}\n"
            );
        }
        format!(
            "workgroupBarrier();
if (lane < {all}u) {{
let query = other + lane / {each}u;
var sum = 0.0;
if (query < {}u) {{
{sum}}}
deltas[lane] = sum;
}}
workgroupBarrier();
",
            p.queries
        )
    }

    /// Reads `lse` and `delta` of the thread's columns; beyond the last query the weights shall be 0.
    pub fn statistics_of_columns(&self, b: &Block) -> String {
        let p = self.problem;
        let [lse, delta] = self.statistics();
        let mut text = if self.at_once { self.sum_up(b) } else { String::new() };
        for n in 0..b.tiling.thread_quads {
            _ = writeln!(text, "var lse_{n} = vec4<f32>({HIGHEST});\nvar delta_{n} = vec4<f32>();");
            for c in 0..4 {
                let column = format!("({}) * 4u + {c}u", b.column_quad(n));
                let query = format!("other + {column}");
                let reads = if self.at_once {
                    let lse = self.known_lse(&format!("lse_{n}[{c}]"), &format!("({query})"));
                    let each = Self::threads_a_query(b);
                    let sums: Vec<String> =
                        (0..each).map(|s| format!("deltas[({column}) * {each}u + {s}u]")).collect();
                    format!("{{\n{lse}delta_{n}[{c}] = {};\n}}", sums.join(" + "))
                } else {
                    format!(
                        "lse_{n}[{c}] = load_statistics({});\ndelta_{n}[{c}] = load_statistics({});",
                        lse.at(&query, "0u"),
                        delta.at(&query, "0u"),
                    )
                };
                _ = if p.queries.is_multiple_of(b.tiling.other) {
                    writeln!(text, "{reads}")
                } else {
                    writeln!(text, "if ({query} < {}u) {{\n{reads}\n}}", p.queries)
                };
            }
        }
        text
    }

    /// Brings `level` and `delta` of the queries of block `next` to workgroup memory, fours of one behind fours of the
    /// other.
    pub fn carried_statistics(&self, coop: &Coop, exponent: &Exponent) -> Carried {
        let (p, b) = (self.problem, &coop.block);
        let fours = b.tiling.other / 4;
        let [lse, delta] = self.statistics();
        let mut fetch = format!("if (lane < {}u) {{\n", 2 * fours);
        _ = writeln!(
            fetch,
            "let is_lse = lane < {fours}u;\nlet query = next + lane % {fours}u * 4u;\n\
             column_next = vec4<f32>(select(0.0, {HIGHEST}, is_lse));"
        );
        let at = format!("select({}, {}, is_lse)", delta.at("query", "0u"), lse.at("query", "0u"));
        for c in 0..4 {
            let read = format!("column_next[{c}] = load_statistics({at} + {c}u);");
            _ = if p.queries.is_multiple_of(b.tiling.other) {
                writeln!(fetch, "{read}")
            } else {
                writeln!(fetch, "if (query + {c}u < {}u) {{ {read} }}", p.queries)
            };
        }
        _ = writeln!(
            fetch,
            "column_next = select(column_next, {}, is_lse);",
            exponent.level_of_lse("column_next")
        );
        Carried {
            declare: "var column_next = vec4<f32>();\n".into(),
            fetch: fetch + "}\n",
            place: format!("if (lane < {}u) {{ {} = column_next; }}\n", 2 * fours, coop.aside("lane")),
        }
    }

    /// Takes `level` and `delta` of the thread's columns up from where they were brought to.
    pub fn placed_statistics(&self, coop: &Coop) -> String {
        let b = &coop.block;
        let (fours, quads) = (b.tiling.other / 4, 0..b.tiling.thread_quads);
        let take = |n| {
            let quad = b.column_quad(n);
            let (level, delta) = (coop.aside(&quad), coop.aside(&format!("{quad} + {fours}u")));
            format!("let level_{n} = {level};\nlet delta_{n} = {delta};\n")
        };
        quads.map(take).collect()
    }

    /// Stores the gradients `s` of the scores where the mask's are asked for.
    pub fn mask_gradient(&self, b: &Block) -> String {
        let Some(dmask) = &self.dmask else { return String::new() };
        let mut text = String::from("if (slice == 0u) {\n");
        for (i, n) in b.cells() {
            let quad = format!("other / 4u + {}", b.column_quad(n));
            let store = dmask.store_quad(&format!("row_{i}"), &quad, &format!("s_{i}_{n}"));
            _ = writeln!(text, "if (row_{i} < {}u) {{\n{store}}}", b.problem.queries);
        }
        text + "}\n"
    }

    /// Behind the keys that causality lets the queries see, the mask's gradient is 0.
    pub fn clear_mask_gradient(&self, b: &Block) -> String {
        let Some(dmask) = self.dmask.as_ref().filter(|_| b.problem.causal) else {
            return String::new();
        };
        let (own, other) = (b.tiling.own, b.tiling.other);
        let at = dmask.at("row", "column");
        format!(
            r"if (slice == 0u) {{
let swept = (seen + {last}u) / {other}u * {other}u;
for (var row = first; row < min(first + {own}u, {queries}u); row++) {{
for (var column = swept + lane; column < {keys}u; column += {threads}u) {{
store_result({at}, 0.0);
}}
}}
}}
",
            last = other - 1,
            queries = b.problem.queries,
            keys = b.problem.keys,
            threads = b.tiling.threads(),
        )
    }
}
