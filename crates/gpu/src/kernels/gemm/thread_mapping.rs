//! How the threads of a workgroup share the loads of a tile of lanes × depth.

/// What one load brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    One,
    /// Four neighbours along k.
    QuadK,
    /// Four neighbouring lanes.
    QuadLane,
    /// Eight neighbours along k, of two bytes each.
    EightK,
    /// Eight neighbouring lanes, likewise.
    EightLane,
}

impl Unit {
    pub fn lanes(self) -> usize {
        match self {
            Unit::QuadLane => 4,
            Unit::EightLane => 8,
            _ => 1,
        }
    }

    pub fn depth(self) -> usize {
        match self {
            Unit::QuadK => 4,
            Unit::EightK => 8,
            _ => 1,
        }
    }

    /// Elements.
    pub fn len(self) -> usize {
        self.lanes() * self.depth()
    }

    /// Whether it lies along k.
    pub fn along_k(self) -> bool {
        self.depth() > 1
    }
}

/// The order in which threads take units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Neighbouring threads take neighbours along k.
    KFirst,
    /// Neighbouring threads take neighbouring lanes.
    LanesFirst,
    /// Pairs along k, then 16 lanes, then the rest of k: whole sectors of memory, and no two threads of a
    /// subgroup that write to the same bank when quads along k are stored across.
    Pairs,
    /// All of k, then lanes, of every eight in an order in which those that a subgroup writes at once (fours of
    /// half of its threads, eights of a quarter), in rows padded by 8 elements of two bytes, stand in different
    /// banks.
    Staggered,
    /// For steps that are stored in two: of every two units of a thread, one lies in either half, and which one
    /// does depends on the thread. So all of a row is read at once, and all threads have as much to store.
    Crossed,
}

/// Lanes between two units of which one lies in either half.
pub(super) const ACROSS: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadMapping {
    pub unit: Unit,
    pub order: Order,
    pub lanes: usize,
    pub depth: usize,
    pub threads: usize,
}

/// A thread's units: an expression of `tid` for the first one, and what each unit adds to it.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub first: String,
    pub added: Vec<usize>,
}

impl Places {
    /// The different ones among the additions, in order.
    pub fn distinct(&self) -> Vec<usize> {
        let mut all = self.added.clone();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl ThreadMapping {
    fn units(&self) -> [usize; 2] {
        [self.lanes / self.unit.lanes(), self.depth / self.unit.depth()]
    }

    /// Threads whose units are written to workgroup memory at once.
    fn at_once(&self) -> usize {
        64 / self.unit.len()
    }

    /// Whether every thread has as much to do.
    pub fn is_even(&self) -> bool {
        let [lanes, depth] = self.units();
        (lanes * depth).is_multiple_of(self.threads)
    }

    /// Loads a thread does.
    pub fn count(&self) -> usize {
        let [lanes, depth] = self.units();
        (lanes * depth).div_ceil(self.threads)
    }

    /// The condition for threads that have something to do, where not all have.
    pub fn active(&self) -> Option<String> {
        let [lanes, depth] = self.units();
        (lanes * depth < self.threads).then(|| format!("tid < {}u", lanes * depth))
    }

    /// A thread's units that are all stored when either half of a step is. None if threads would differ.
    pub fn in_two(&self) -> Option<[Vec<usize>; 2]> {
        let count = self.count();
        if self.order == Order::Crossed {
            return Some([Vec::new(), (0..count).collect()]);
        }
        let half = self.depth / 2;
        let ks_at_once = self.threads / common(self.units()[0], self.threads);
        let alike = self.order == Order::LanesFirst && self.is_even() && half.is_multiple_of(ks_at_once);
        let (_, ks) = self.places();
        let of = |number: usize| (0..count).filter(|&j| ks.added[j] / half == number).collect();
        alike.then(|| [of(0), of(1)])
    }

    /// Lanes and ks of a thread's units, in elements.
    pub fn places(&self) -> (Places, Places) {
        let ([lanes, depth], t) = (self.units(), self.threads);
        let count = self.count();
        let (lane, lane_step, k, k_step) = match self.order {
            Order::Pairs if depth >= 2 && t >= 16 * depth => (
                format!("(tid / 2u) % 16u + tid / {}u * 16u", 16 * depth),
                (0..count).map(|j| j * (t / depth)).collect(),
                format!("tid % 2u + (tid / 32u) % {}u * 2u", depth / 2),
                vec![0; count],
            ),
            Order::Staggered if depth < self.at_once() && t >= 8 * depth => {
                let rows = self.at_once() / depth;
                (
                    format!(
                        "tid / {depth}u % {rows}u * {}u + tid / {}u % {}u + tid / {}u * 8u",
                        8 / rows,
                        self.at_once(),
                        8 / rows,
                        8 * depth
                    ),
                    (0..count).map(|j| j * (t / depth)).collect(),
                    format!("tid % {depth}u"),
                    vec![0; count],
                )
            }
            // What a quarter of a subgroup writes are two units of four rows, two apart, which are in different banks.
            Order::Crossed => (
                format!("tid / {depth}u % 2u * 4u + tid / {}u % 2u + tid / {}u * 8u", 2 * depth, 4 * depth),
                (0..count).map(|j| j % 2 * ACROSS + j / 2 * (2 * t / depth)).collect(),
                format!("tid % {depth}u"),
                vec![0; count],
            ),
            Order::KFirst | Order::Pairs | Order::Staggered => (
                format!("tid / {depth}u"),
                (0..count).map(|j| j * (t / depth)).collect(),
                format!("tid % {depth}u"),
                vec![0; count],
            ),
            Order::LanesFirst => {
                let block = common(lanes, t);
                let around = lanes / block;
                (
                    format!("tid % {block}u"),
                    (0..count).map(|j| j % around * block).collect(),
                    format!("tid / {block}u"),
                    (0..count).map(|j| j / around * (t / block)).collect(),
                )
            }
        };
        let scaled = |first: String, added: Vec<usize>, by: usize| Places {
            first: if by == 1 { first } else { format!("({first}) * {by}u") },
            added: added.into_iter().map(|a| a * by).collect(),
        };
        (scaled(lane, lane_step, self.unit.lanes()), scaled(k, k_step, self.unit.depth()))
    }
}

/// The greatest number that divides both.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}
