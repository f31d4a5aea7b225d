//! The scales of split operands: a power of two for every lane, as an exponent.

use crate::dispatch::Binding;

/// The exponent that the largest element of a lane gets: halves end at 2¹⁶, and what is lost under their
/// smallest is then 2⁻²⁸ of the largest at most.
const TOP: i32 = 14;

/// What is added to exponents in the bits of an f32, and the least that scales are made for: with less, they
/// and their inverses would not be normal numbers.
const BIAS: i32 = 127;
const MIN_EXPONENT: i32 = 15;

/// Declares `exponent`, the scale of a lane whose largest magnitude has the bits `most`; or those of four.
pub(super) fn exponent(most: &str, four: bool) -> String {
    let (ty, places) = if four { ("vec4<i32>", "vec4<u32>(23u)") } else { ("i32", "23u") };
    format!("let exponent = max({most} >> {places}, {ty}({MIN_EXPONENT})) - {ty}({});\n", BIAS + TOP)
}

/// What elements of a lane with scale `exponent` are multiplied by; or those of four lanes.
pub(super) fn inverse(exponent: &str, four: bool) -> String {
    if four {
        format!("bitcast<vec4<f32>>((vec4<i32>({BIAS}) - {exponent}) << vec4<u32>(23u))")
    } else {
        format!("bitcast<f32>(({BIAS} - {exponent}) << 23u)")
    }
}

/// Declares `high{mark}` and `low{mark}`, the halves of the vec4 `scaled`. The first one is rounded in the
/// bits of the number: compilers take a number that is narrowed and widened again for the number itself.
/// What is not a number stays none in the rest.
pub(super) fn halves(scaled: &str, mark: &str) -> String {
    format!(
        "let whole{mark} = {scaled};
let near{mark} = bitcast<vec4<f32>>((bitcast<vec4<u32>>(whole{mark}) + 0x1000u) & vec4<u32>(0xffffe000u));
let high{mark} = vec4<f16>(near{mark});
let low{mark} = vec4<f16>(whole{mark} - near{mark});
"
    )
}

/// Where the scales of rows and columns are.
#[derive(Clone, Debug)]
pub(super) struct Scales {
    pub binding: Binding,
    /// Where those of an item begin.
    pub rows: String,
    pub columns: String,
    pub last_column: usize,
}

impl Scales {
    /// Declares `value`, vec4 `sums` of row `m` and columns from `n` on without their scales. These may be
    /// out of the range of numbers together, though the result is not: so they are applied in two halves.
    pub fn apply(&self, sums: &str) -> String {
        format!(
            "let scale = load4_scales({} + min(n, {}u)) + load_scales({} + m);
let scale_half = scale >> vec4<u32>(1u);
let scale_rest = scale - scale_half;
let value = {sums} * bitcast<vec4<f32>>((scale_half + 127) << vec4<u32>(23u))
    * bitcast<vec4<f32>>((scale_rest + 127) << vec4<u32>(23u));
",
            self.columns, self.last_column, self.rows
        )
    }

    /// Declares `column_scale`, that of column `n`.
    pub fn column(&self) -> String {
        format!("let column_scale = load_scales({} + min(n, {}u));\n", self.columns, self.last_column + 3)
    }

    /// Declares `value{mark}`, `sum` of row `m` without that row's scale and `column_scale`.
    pub fn apply_one(&self, sum: &str, m: &str, mark: usize) -> String {
        format!(
            "let scale{mark} = column_scale + load_scales({} + {m});
let half{mark} = scale{mark} >> 1u;
let rest{mark} = scale{mark} - half{mark};
let value{mark} = {sum} * bitcast<f32>((half{mark} + 127) << 23u) * bitcast<f32>((rest{mark} + 127) << 23u);
",
            self.rows
        )
    }
}
