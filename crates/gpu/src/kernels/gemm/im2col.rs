//! The windows of a convolution as an operand: elements of an image that a pixel of another one, the grid,
//! meets with a tap of the kernel. Nothing is copied; positions are computed where elements are read.

use super::load::{LoadTile, Loader, only_active};
use super::thread_mapping::{Order, ThreadMapping, Unit};
use super::wgsl::{Digits, scalar, sum, times, unsigned};

#[derive(Clone, Debug)]
pub(super) struct Window {
    pub offset: i64,
    pub items: Digits,
    /// From one image, and from one channel, to the next.
    pub image: i64,
    pub plane: i64,
    /// Rows and columns of a plane.
    pub extent: [usize; 2],
    pub grid: [usize; 2],
    /// What one pixel of the grid is in the image.
    pub step: [usize; 2],
    pub role: Role,
}

/// Which index runs over lanes and which over k.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// Lanes are pixels of the grid of all images; k is the channels, for one tap a step.
    PixelsByTap,
    /// Lanes are pixels; k is (channel, tap).
    Pixels(Taps),
    /// Lanes are channels, k pixels; the item's inner digit is the tap.
    ChannelsByTap(Taps),
    /// Lanes are (channel, tap), k pixels.
    Channels(Taps),
}

/// The pixel of the image that pixel 0 of the grid meets with tap t is `first + t · advance`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taps {
    pub kernel: [usize; 2],
    pub first: [i64; 2],
    pub advance: [i64; 2],
}

impl Taps {
    pub fn count(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Declares `NAME_y` and `NAME_x`, what the tap of number `tap` adds.
    fn shift(&self, name: &str, tap: &str) -> String {
        let ([_, width], [y, x], [down, right]) = (self.kernel, self.first, self.advance);
        format!(
            "let {name}_y = i32(({tap}) / {width}u) * {down}i + ({y}i);
let {name}_x = i32(({tap}) % {width}u) * {right}i + ({x}i);
"
        )
    }
}

impl Window {
    fn pixels(&self) -> usize {
        self.grid[0] * self.grid[1]
    }

    /// Declares, for pixel `index` of the grid, its place in the image: `NAME_y`, `NAME_x` and `NAME_image`.
    fn pixel(&self, name: &str, index: &str) -> String {
        let (pixels, [_, width], [down, right]) = (self.pixels(), self.grid, self.step);
        let image = times(&format!("({index} / {pixels}u)"), self.image);
        format!(
            "let {name}_image = {image};
let {name}_y = i32(({index} % {pixels}u) / {width}u * {down}u);
let {name}_x = i32({index} % {width}u * {right}u);
"
        )
    }

    /// Declares `NAME_ok`, whether the pixel (`y`, `x`) is in the image, and `NAME_at`, its place in a plane.
    fn inside(&self, name: &str, y: &str, x: &str) -> String {
        let [rows, columns] = self.extent;
        format!(
            "let {name}_row = {y};
let {name}_column = {x};
let {name}_ok = u32({name}_row) < {rows}u && u32({name}_column) < {columns}u;
let {name}_at = u32({name}_row * {columns}i + {name}_column);
"
        )
    }

    pub fn loader(&self, part: LoadTile) -> Loader {
        match self.role {
            Role::PixelsByTap => self.pixels_by_tap(part),
            Role::Pixels(taps) => self.pixels_flat(part, taps),
            Role::ChannelsByTap(taps) => self.channels(part, taps, true),
            Role::Channels(taps) => self.channels(part, taps, false),
        }
    }

    fn base(&self, name: &str) -> String {
        let base = sum(&[unsigned(self.offset), self.items.position("item")]);
        format!("let {name}_base = {base};\n")
    }

    fn unit(part: &LoadTile) -> Unit {
        if part.gather { Unit::QuadK } else { Unit::One }
    }

    /// A loader whose registers are single elements, `NAME_raw<unit>_<element>`. What is outside reads
    /// something else that is there, and becomes zero when it is stored: nothing waits for memory before
    /// that. `flag` names the variable that tells of an element, by unit and place.
    fn finished(
        part: LoadTile,
        spread: ThreadMapping,
        setup: String,
        [fetch, guarded]: [String; 2],
        flag: impl Fn(usize, usize) -> String,
    ) -> Loader {
        let (name, scalar) = (part.name, scalar(part.lane));
        let (mut flags, mut declarations, mut unpack) = (Vec::new(), String::new(), String::new());
        for j in 0..spread.count() {
            let mut elements = Vec::new();
            for s in 0..spread.unit.depth() {
                declarations += &format!("var {name}_raw{j}_{s}: {scalar};\n");
                elements.push(format!("select({scalar}(), {name}_raw{j}_{s}, {})", flag(j, s)));
                flags.push(flag(j, s));
            }
            let ty = part.register(spread.unit);
            unpack += &format!("let {name}_value{j} = {ty}({});\n", elements.join(", "));
        }
        flags.sort_unstable();
        flags.dedup();
        declarations += &flags.iter().map(|flag| format!("var {flag}: bool;\n")).collect::<String>();
        let (fetch, guarded) = (only_active(&spread, fetch), only_active(&spread, guarded));
        Loader { part, spread, width: 1, setup, fetch, guarded, in_two: None, declarations, unpack }
    }

    /// Reads an element, in a step that may not have it only if it does.
    fn read(part: &LoadTile, j: usize, s: usize, position: &str, k: usize, guarded: bool) -> String {
        let name = part.name;
        let read = format!("{name}_raw{j}_{s} = load_{name}({position});");
        if !guarded {
            return read + "\n";
        }
        let k = sum(&[format!("{name}_k"), unsigned(k as i64)]);
        let zero = format!("{name}_raw{j}_{s} = {}();", scalar(part.lane));
        format!("if ({k} < k_left) {{ {read} }} else {{ {zero} }}\n")
    }

    /// A thread's lanes stay the same, so each step asks once a lane whether its pixel is inside.
    fn pixels_by_tap(&self, part: LoadTile) -> Loader {
        let spread = part.spread(Self::unit(&part), Order::LanesFirst);
        let name = part.name;
        let (mut setup, lanes, ks) = part.places(&spread);
        setup += &self.base(name);
        let channel = times(&format!("{name}_k"), self.plane);
        for added in lanes.distinct() {
            let lane = format!("{name}_lane{added}");
            setup += &self.pixel(&lane, &format!("{name}_lane_at{added}"));
            let start = sum(&[format!("{name}_base"), format!("{lane}_image"), channel.clone()]);
            setup += &format!("let {lane}_start = {start};\n");
        }
        let write = |guarded: bool| {
            let mut text = String::new();
            for added in lanes.distinct() {
                let (lane, hit) = (format!("{name}_lane{added}"), format!("{name}_hit{added}"));
                text += &self.inside(&hit, &format!("{lane}_y + tap_y"), &format!("{lane}_x + tap_x"));
                let at = format!("select(0u, {hit}_at, {hit}_ok)");
                let start = sum(&[format!("{lane}_start"), times("c0", self.plane), at]);
                text += &format!("let {hit}_start = {start};\n{name}_inside{added} = {hit}_ok;\n");
            }
            for (j, s) in elements(&spread) {
                let (k, hit) = (ks.added[j] + s, format!("{name}_hit{}", lanes.added[j]));
                let position = sum(&[format!("{hit}_start"), unsigned(self.plane * k as i64)]);
                text += &Self::read(&part, j, s, &position, k, guarded);
            }
            text
        };
        let flag = |j: usize, _| format!("{name}_inside{}", lanes.added[j]);
        Self::finished(part, spread, setup, [write(false), write(true)], flag)
    }

    /// Every element finds its own tap.
    fn pixels_flat(&self, part: LoadTile, taps: Taps) -> Loader {
        let spread = part.spread(Self::unit(&part), Order::LanesFirst);
        let name = part.name;
        let (mut setup, lanes, ks) = part.places(&spread);
        setup += &self.base(name);
        for added in lanes.distinct() {
            let lane = format!("{name}_lane{added}");
            setup += &self.pixel(&lane, &format!("{name}_lane_at{added}"));
            let start = sum(&[format!("{name}_base"), format!("{lane}_image")]);
            setup += &format!("let {lane}_start = {start};\n");
        }
        let count = taps.count();
        let write = |guarded: bool| {
            let mut text = String::new();
            for k in distinct_ks(&ks.added, spread.unit) {
                let at = format!("{name}_tap{k}");
                let index = sum(&["k0".into(), format!("{name}_k"), unsigned(k as i64)]);
                text += &format!("let {at} = {index};\n");
                text += &taps.shift(&at, &format!("{at} % {count}u"));
                let channel = times(&format!("({at} / {count}u)"), self.plane);
                text += &format!("let {at}_channel = {channel};\n");
            }
            for (j, s) in elements(&spread) {
                let k = ks.added[j] + s;
                let (lane, tap) = (format!("{name}_lane{}", lanes.added[j]), format!("{name}_tap{k}"));
                let hit = format!("{name}_hit{j}_{s}");
                text += &self.inside(&hit, &format!("{lane}_y + {tap}_y"), &format!("{lane}_x + {tap}_x"));
                let at = format!("select(0u, {hit}_at, {hit}_ok)");
                let position = sum(&[format!("{lane}_start"), format!("{tap}_channel"), at]);
                text += &Self::read(&part, j, s, &position, k, guarded);
                text += &format!("{name}_inside{j}_{s} = {hit}_ok;\n");
            }
            text
        };
        let flag = |j, s| format!("{name}_inside{j}_{s}");
        Self::finished(part, spread, setup, [write(false), write(true)], flag)
    }

    /// A thread's ks stay the same within a step, so the pixel is found once a step.
    fn channels(&self, part: LoadTile, taps: Taps, by_tap: bool) -> Loader {
        let spread = part.spread(Self::unit(&part), Order::KFirst);
        let name = part.name;
        let (mut setup, lanes, ks) = part.places(&spread);
        setup += &self.base(name);
        let count = taps.count();
        if by_tap {
            setup += &taps.shift(&format!("{name}_tap"), &format!("item % {count}u"));
        }
        for added in lanes.distinct() {
            let at = format!("{name}_lane_at{added}");
            let channel = if by_tap {
                times(&at, self.plane)
            } else {
                setup += &taps.shift(&format!("{name}_tap{added}"), &format!("{at} % {count}u"));
                times(&format!("({at} / {count}u)"), self.plane)
            };
            let start = sum(&[format!("{name}_base"), channel]);
            setup += &format!("let {name}_lane{added}_start = {start};\n");
        }
        let write = |guarded: bool| {
            let mut text = String::new();
            for k in distinct_ks(&ks.added, spread.unit) {
                let pixel = format!("{name}_pixel{k}");
                let index = sum(&["k0".into(), format!("{name}_k"), unsigned(k as i64)]);
                text += &format!("let {pixel} = {index};\n");
                if spread.unit == Unit::QuadK && k % 4 > 0 && self.grid[1].is_multiple_of(4) {
                    let quad = format!("{name}_pixel{}", k - k % 4);
                    text += &format!(
                        "let {pixel}_image = {quad}_image;
let {pixel}_y = {quad}_y;
let {pixel}_x = {quad}_x + {}i;
",
                        k % 4 * self.step[1]
                    );
                } else {
                    text += &self.pixel(&pixel, &pixel);
                }
                if by_tap {
                    let (y, x) = (format!("{pixel}_y + {name}_tap_y"), format!("{pixel}_x + {name}_tap_x"));
                    text += &self.inside(&pixel, &y, &x);
                    let at = format!("select(0u, {pixel}_image + {pixel}_at, {pixel}_ok)");
                    text += &format!("let {pixel}_start = {at};\n{name}_inside{k} = {pixel}_ok;\n");
                }
            }
            for (j, s) in elements(&spread) {
                let (lane, k) = (lanes.added[j], ks.added[j] + s);
                let pixel = format!("{name}_pixel{k}");
                let at = if by_tap {
                    format!("{pixel}_start")
                } else {
                    let (tap, hit) = (format!("{name}_tap{lane}"), format!("{name}_hit{j}_{s}"));
                    let (y, x) = (format!("{pixel}_y + {tap}_y"), format!("{pixel}_x + {tap}_x"));
                    text += &self.inside(&hit, &y, &x);
                    text += &format!("{name}_inside{j}_{s} = {hit}_ok;\n");
                    format!("select(0u, {pixel}_image + {hit}_at, {hit}_ok)")
                };
                let position = sum(&[format!("{name}_lane{lane}_start"), at]);
                text += &Self::read(&part, j, s, &position, k, guarded);
            }
            text
        };
        let flag = |j: usize, s: usize| {
            if by_tap { format!("{name}_inside{}", ks.added[j] + s) } else { format!("{name}_inside{j}_{s}") }
        };
        Self::finished(part, spread, setup, [write(false), write(true)], flag)
    }
}

/// Elements of a thread's units, as (unit, place in it).
fn elements(spread: &ThreadMapping) -> impl Iterator<Item = (usize, usize)> {
    let depth = spread.unit.depth();
    (0..spread.count()).flat_map(move |j| (0..depth).map(move |s| (j, s)))
}

/// The ks that units read, each once.
fn distinct_ks(added: &[usize], unit: Unit) -> Vec<usize> {
    let mut all: Vec<usize> = added.iter().flat_map(|&a| (0..unit.depth()).map(move |s| a + s)).collect();
    all.sort_unstable();
    all.dedup();
    all
}
