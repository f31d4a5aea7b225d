//! The variants of attention: tilings, with cooperative matrices or without. One of them is chosen at once; the
//! tuner tries them all.

use super::coop;
use super::problem::Problem;
use super::tiling::{BACKWARD, FORWARD, Tiling};
use crate::caps::Caps;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// By plain arithmetic; the tiling of the queries' gradients (or of the forward pass), and of the keys'.
    Plain(Tiling, Tiling),
    /// By cooperative matrices.
    Coop(Tiling),
}

impl Variant {
    pub fn tilings(self) -> [Tiling; 2] {
        match self {
            Variant::Plain(queries, keys) => [queries, keys],
            Variant::Coop(tiling) => [tiling; 2],
        }
    }
}

/// Its name, which is the same in every run.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |t: &Tiling| {
            let ahead = if t.ahead { " ahead" } else { "" };
            let threads = format!("{}x{}", t.thread_rows, t.thread_quads);
            format!("{}x{} by {threads} deep {}{ahead}", t.own, t.other, t.depth)
        };
        match self {
            Variant::Plain(queries, keys) if queries == keys => write!(f, "rows {}", text(queries)),
            Variant::Plain(queries, keys) => {
                write!(f, "queries {} and keys {}", text(queries), text(keys))
            }
            Variant::Coop(tiling) => write!(f, "cooperative {}", text(tiling)),
        }
    }
}

/// All that the problem and the adapter allow.
pub(super) fn all(p: &Problem, forward: bool, caps: &Caps) -> Vec<Variant> {
    if p.items() * p.queries * p.keys == 0 {
        return Vec::new();
    }
    let widths = [p.width, p.value_width];
    let fitting = |table: [Tiling; 3], rows: usize| -> Vec<Tiling> {
        table.into_iter().filter(|t| t.fits(rows, widths, caps)).collect()
    };
    let mut all: Vec<Variant> = coop::tilings(p, caps).into_iter().map(Variant::Coop).collect();
    if forward {
        let mut tilings = fitting(FORWARD, p.queries);
        tilings.extend(fitting(BACKWARD, p.queries).into_iter().filter(|t| !FORWARD.contains(t)));
        all.extend(tilings.into_iter().map(|t| Variant::Plain(t, t)));
    } else {
        let keys = fitting(BACKWARD, p.keys);
        let both = fitting(BACKWARD, p.queries).into_iter().flat_map(|q| keys.iter().map(move |&k| (q, k)));
        all.extend(both.map(|(q, k)| Variant::Plain(q, k)));
    }
    all
}
