//! Rows of quads (four floats) in workgroup memory, laid out so that threads that read different rows at the
//! same column meet different banks.

/// Memory banks, counted in quads.
const BANKS: usize = 8;

/// How many quads apart rows lie: if whole turns of the banks lie between rows, the columns of a row are
/// exchanged instead (see [`Tile::at`]), which costs no memory.
pub(super) fn pitch(quads: usize) -> usize {
    if quads.is_multiple_of(BANKS) { quads } else { quads | 1 }
}

#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// The array in workgroup memory, and where in it the tile begins.
    pub name: &'static str,
    pub first: usize,
    pub rows: usize,
    pub quads: usize,
    /// A thread reads this many rows that follow each other.
    pub group: usize,
    /// Of f16, for cooperative matrices: these read plain rows, which lie a little further apart.
    pub half: bool,
}

/// How many quads apart rows of f16 lie.
pub(super) fn half_pitch(quads: usize) -> usize {
    quads + 2
}

impl Tile {
    pub fn pitch(&self) -> usize {
        if self.half { half_pitch(self.quads) } else { pitch(self.quads) }
    }

    /// Whether columns are exchanged from row to row.
    fn turned(&self) -> bool {
        !self.half && self.quads > 0 && self.quads.is_multiple_of(BANKS)
    }

    fn start(&self) -> String {
        if self.first == 0 { String::new() } else { format!("{}u + ", self.first) }
    }

    /// The place of a quad: column `quad` of row `within` of the rows of thread `group`.
    pub fn at(&self, group: &str, within: usize, quad: &str) -> String {
        let row = format!("{}(({group}) * {}u + {within}u) * {}u", self.start(), self.group, self.pitch());
        if self.turned() {
            format!("{}[{row} + (({quad}) ^ (({group}) & {}u))]", self.name, BANKS - 1)
        } else {
            format!("{}[{row} + {quad}]", self.name)
        }
    }

    /// The same for a row by its number.
    pub fn at_row(&self, row: &str, quad: &str) -> String {
        let place = format!("{}({row}) * {}u", self.start(), self.pitch());
        if self.turned() {
            format!("{}[{place} + (({quad}) ^ ((({row}) / {}u) & {}u))]", self.name, self.group, BANKS - 1)
        } else {
            format!("{}[{place} + {quad}]", self.name)
        }
    }

    /// Quads in all.
    pub fn size(&self) -> usize {
        self.rows * self.pitch()
    }
}
