//! Programs over loops of which even a single row sees more pieces of memory than a dispatch may. What is folded is folded
//! in chunks of the rows, and what is looked up in a large table in passes, each of which sees few chunks; results lie in
//! memory aside, and the rest of the program reads them there. It has no folds any more, and can be cut anywhere.

use super::loops::{self, ChunkLayout};
use super::staging::KernelSequence;
use std::ops::Range;
use volta_ir::dtype::{DType, Scalar};
use volta_ir::op::{BinaryOp, ReduceOp};
use volta_ir::plan::kernel::{
    Access, Instruction, KernelBody, LoopLevel, MapKernel, Slot, Step, Store, Value,
};
use volta_ir::plan::view::Affine;

/// The program in stages that see at most `most` pieces each; none if there are no such. Slots are added from `first` on.
pub(crate) fn lower_multipass(
    map: &MapKernel,
    first: Slot,
    most: usize,
    pieces: &impl ChunkLayout,
) -> Option<KernelSequence> {
    let mut stages = MultiPass {
        map: MapKernel { stores: Vec::new(), ..map.clone() },
        first,
        most,
        pieces,
        sequence: KernelSequence::default(),
    };
    for v in 0..map.code.len() {
        match stages.map.code[v].step.clone() {
            Step::Gather { access, index, stride, extent } if pieces.count(access.slot) > 1 => {
                stages.look_up(v, &Table { access, index, stride, extent })?;
            }
            Step::Reduce(op, of) => stages.fold(v, op, of)?,
            Step::ArgReduce { max, of } => stages.find(v, max, of)?,
            Step::GlobalReduce(op, of) => stages.total(v, op, of),
            _ => {}
        }
    }
    stages.store(&map.stores);
    Some(stages.sequence)
}

struct MultiPass<'a, P> {
    /// What is left: values that are in memory aside are loaded.
    map: MapKernel,
    first: Slot,
    most: usize,
    pieces: &'a P,
    sequence: KernelSequence,
}

/// Iterations of a row: some of each of its loops.
type Chunk = Vec<Range<usize>>;

/// What a value is looked up in.
struct Table {
    access: Access,
    index: Value,
    stride: isize,
    extent: usize,
}

/// Memory aside is small; if it is not, what reads it is cut once more.
struct Known<'a, P> {
    pieces: &'a P,
    first: Slot,
}

impl<P: ChunkLayout> ChunkLayout for Known<'_, P> {
    fn elements(&self, slot: Slot) -> usize {
        if slot < self.first { self.pieces.elements(slot) } else { isize::MAX as usize }
    }

    fn count(&self, slot: Slot) -> usize {
        if slot < self.first { self.pieces.count(slot) } else { 1 }
    }
}

impl<P: ChunkLayout> MultiPass<'_, P> {
    /// A fold of rows, in chunks that are folded once more.
    fn fold(&mut self, v: Value, op: ReduceOp, of: Value) -> Option<()> {
        let dtype = self.map.code[v].dtype;
        let (wide, rank) = (widened(dtype), self.map.code[of].rank);
        let chunk = |more: &mut More, _: usize| {
            let cast = more.push(Step::Cast(of), wide, rank);
            vec![more.push(Step::Reduce(op, cast), wide, LoopLevel::Row)]
        };
        let (chunks, partial) = self.in_chunks(&[wide], false, chunk)?;
        let result = self.add_slot(dtype, self.map.rows());
        let mut more = More::default();
        let loaded = more.push(load(partial, self.partial_position(chunks)), wide, LoopLevel::Full);
        let folded = more.push(Step::Reduce(op, loaded), wide, LoopLevel::Row);
        let cast = more.push(Step::Cast(folded), dtype, LoopLevel::Row);
        self.push_over_chunks(chunks, more, cast, result);
        self.replace(v, result, self.row_position(self.map.extents.len()));
        Some(())
    }

    /// The place of a row's first extremum: that of every chunk, and then the chunk.
    fn find(&mut self, v: Value, max: bool, of: Value) -> Option<()> {
        let (dtype, of_dtype) = (self.map.code[v].dtype, self.map.code[of].dtype);
        let extreme = if max { ReduceOp::Max } else { ReduceOp::Min };
        let chunk = |more: &mut More, before: usize| {
            let place = more.push(Step::ArgReduce { max, of }, dtype, LoopLevel::Row);
            let before = more.push(Step::Literal(Scalar::Int(before as i64)), dtype, LoopLevel::Uniform);
            let place = more.push(Step::Binary(BinaryOp::Add, place, before), dtype, LoopLevel::Row);
            let best = more.push(Step::Reduce(extreme, of), of_dtype, LoopLevel::Row);
            vec![best, place]
        };
        let (chunks, best) = self.in_chunks(&[of_dtype, dtype], true, chunk)?;
        let (outer, rows) = (self.map.outer, self.map.rows());
        let (which, result) = (self.add_slot(dtype, rows), self.add_slot(dtype, rows));
        let mut more = More::default();
        let loaded = more.push(load(best, self.partial_position(chunks)), of_dtype, LoopLevel::Full);
        let found = more.push(Step::ArgReduce { max, of: loaded }, dtype, LoopLevel::Row);
        self.push_over_chunks(chunks, more, found, which);
        // Its place, in that chunk.
        let mut more = More::default();
        let index = more.push(load(which, self.row_position(outer)), dtype, LoopLevel::Full);
        let access = Access { slot: best + 1, position: scaled(self.row_position(outer), chunks) };
        let place =
            more.push(Step::Gather { access, index, stride: 1, extent: chunks }, dtype, LoopLevel::Full);
        let stores = vec![store(place, result, self.row_position(outer))];
        self.push(MapKernel { extents: self.map.extents[..outer].to_vec(), outer, code: more.code, stores });
        self.replace(v, result, self.row_position(self.map.extents.len()));
        Some(())
    }

    /// Folds rows in chunks, each of which leaves values of these types for every row: how many chunks, and the first of the
    /// slots the values are in. What is computed may depend on the iterations of a row before the chunk, if they come
    /// `in_order`.
    fn in_chunks(
        &mut self,
        dtypes: &[DType],
        in_order: bool,
        compute: impl Fn(&mut More, usize) -> Vec<Value>,
    ) -> Option<(usize, Slot)> {
        let (outer, all) = (self.map.outer, self.map.extents.len());
        let first = self.first + self.sequence.slots.len();
        let program = |chunk: &[Range<usize>], number: usize, count: usize| {
            let before = chunk.iter().zip(&self.map.extents[outer..]);
            let before = before.fold(0, |before, (range, extent)| before * extent + range.start);
            let mut more = More::after(&self.map);
            let values = compute(&mut more, before);
            let mut position = scaled(self.row_position(all), count);
            position.offset += number as isize;
            let stores = (first..).zip(values).map(|(slot, value)| store(value, slot, position.clone()));
            let whole = self.program(all, outer, more, stores.collect());
            (outer..all).zip(chunk).fold(whole, |part, (l, range)| part.part(l, range.clone()))
        };
        let fits = |chunk: &[Range<usize>]| self.fits(&program(chunk, 0, 1));
        let seen =
            |chunk: &[Range<usize>]| loops::number(&loops::windows(&program(chunk, 0, 1), &self.known()));
        let row: Chunk = self.map.extents[outer..].iter().map(|&extent| 0..extent).collect();
        let chunks = cut_down(row, fits, |half| if in_order { 0 } else { seen(half) })?;
        let (count, rows) = (chunks.len(), self.map.rows());
        let programs: Vec<MapKernel> =
            chunks.iter().enumerate().map(|(number, chunk)| program(chunk, number, count)).collect();
        dtypes.iter().for_each(|&dtype| {
            self.add_slot(dtype, rows * count);
        });
        programs.into_iter().for_each(|program| self.push(program));
        Some((count, first))
    }

    /// A fold of all rows: they are stored, and then are one row.
    fn total(&mut self, v: Value, op: ReduceOp, of: Value) {
        let dtype = self.map.code[v].dtype;
        let (wide, rows, outer) = (widened(dtype), self.map.rows(), self.map.outer);
        let (each, result) = (self.add_slot(wide, rows), self.add_slot(dtype, 1));
        let mut more = More::after(&self.map);
        let cast = more.push(Step::Cast(of), wide, LoopLevel::Row);
        let stores = vec![store(cast, each, self.row_position(self.map.extents.len()))];
        self.push(self.program(outer, outer, more, stores));
        let mut more = More::default();
        let loaded = more.push(load(each, Affine::index(1, 0)), wide, LoopLevel::Full);
        let folded = more.push(Step::Reduce(op, loaded), wide, LoopLevel::Row);
        let cast = more.push(Step::Cast(folded), dtype, LoopLevel::Row);
        let stores = vec![store(cast, result, Affine::constant(1, 0))];
        self.push(MapKernel { extents: vec![rows], outer: 0, code: more.code, stores });
        self.replace(v, result, Affine::constant(self.map.extents.len(), 0));
    }

    /// What is looked up in a table, in passes that see a part of it each: where an index is in that part, it is found.
    fn look_up(&mut self, v: Value, table: &Table) -> Option<()> {
        let Instruction { dtype, rank, .. } = self.map.code[v];
        let all = self.map.extents.len();
        let loops = match rank {
            LoopLevel::Full => all,
            LoopLevel::Row => self.map.outer,
            LoopLevel::Uniform | LoopLevel::Global => 0,
        };
        let numel = self.map.extents[..loops].iter().product();
        let slot = self.first + self.sequence.slots.len();
        let position = flat(&self.map.extents[..loops], all);
        let pass = |range: &Range<usize>| {
            let mut more = More::after(&self.map);
            let found = more.look_up(&self.map, v, table, range);
            let known = more.push(load(slot, position.clone()), dtype, rank);
            let value = if range.start == 0 {
                found
            } else {
                let here = more.is_within(&self.map, table, range);
                more.push(Step::Where(here, found, known), dtype, rank)
            };
            let stores = vec![store(value, slot, position.clone())];
            self.program(loops, loops, more, stores)
        };
        let rows: Chunk = std::iter::once(0..table.extent).collect();
        let passes = cut_down(rows, |range| self.fits(&pass(&range[0])), |_| 0)?;
        let passes: Vec<MapKernel> = passes.iter().map(|range| pass(&range[0])).collect();
        self.add_slot(dtype, numel);
        passes.into_iter().for_each(|pass| self.push(pass));
        self.replace(v, slot, position);
        Some(())
    }

    /// What is stored of every iteration, of every row, and once.
    fn store(&mut self, stores: &[Store]) {
        let (outer, all) = (self.map.outer, self.map.extents.len());
        let loops = |store: &Store| {
            let inner = store.access.position.coefficients[outer..].iter().any(|&c| c != 0);
            match self.map.code[store.value].rank {
                _ if inner => all,
                LoopLevel::Full => all,
                LoopLevel::Global => 0,
                LoopLevel::Row | LoopLevel::Uniform => outer,
            }
        };
        let mut programs: Vec<(usize, Vec<Store>)> = Vec::new();
        for store in stores {
            let loops = loops(store);
            match programs.iter_mut().find(|(known, _)| *known == loops) {
                Some((_, stores)) => stores.push(store.clone()),
                None => programs.push((loops, vec![store.clone()])),
            }
        }
        // In-place results are written after all that reads what was there: the larger ones first.
        programs.sort_by_key(|&(loops, _)| std::cmp::Reverse(loops));
        for (loops, stores) in programs {
            let program = self.program(loops, loops, More::after(&self.map), stores);
            self.push(program);
        }
    }

    /// A program over the first `loops` of all loops, of which `outer` are rows, with more code.
    fn program(&self, loops: usize, outer: usize, more: More, stores: Vec<Store>) -> MapKernel {
        let mut code = self.map.code.clone();
        code.extend(more.code);
        let mut map = MapKernel { extents: self.map.extents.clone(), outer, code, stores };
        map.remove_unused();
        map.extents.truncate(loops);
        map.forms_mut().into_iter().for_each(|form| form.coefficients.truncate(loops));
        if outer == loops {
            for i in map.code.iter_mut().filter(|i| i.rank != LoopLevel::Uniform) {
                i.rank = LoopLevel::Full;
            }
        }
        map
    }

    /// Adds a program that folds what `chunks` left of every row.
    fn push_over_chunks(&mut self, chunks: usize, more: More, value: Value, slot: Slot) {
        let outer = self.map.outer;
        let mut extents = self.map.extents[..outer].to_vec();
        extents.push(chunks);
        let mut position = self.row_position(outer);
        position.coefficients.push(0);
        let stores = vec![store(value, slot, position)];
        self.push(MapKernel { extents, outer, code: more.code, stores });
    }

    fn push(&mut self, map: MapKernel) {
        self.sequence.works.push(KernelBody::Map(vec![map]));
    }

    fn fits(&self, map: &MapKernel) -> bool {
        loops::fitting(map, self.most, &self.known()).is_some()
    }

    fn known(&self) -> Known<'_, P> {
        Known { pieces: self.pieces, first: self.first }
    }

    fn add_slot(&mut self, dtype: DType, numel: usize) -> Slot {
        self.sequence.slots.push((dtype, numel));
        self.first + self.sequence.slots.len() - 1
    }

    /// Loads a value from where it is now.
    fn replace(&mut self, v: Value, slot: Slot, position: Affine) {
        self.map.code[v].step = load(slot, position);
    }

    /// The number of the row, over some loops.
    fn row_position(&self, loops: usize) -> Affine {
        flat(&self.map.extents[..self.map.outer], loops)
    }

    /// Where the part of a row that the innermost of the loops counts is, behind those of the rows.
    fn partial_position(&self, chunks: usize) -> Affine {
        let mut position = scaled(self.row_position(self.map.outer), chunks);
        position.coefficients.push(1);
        position
    }
}

/// Code that is added to a program's.
#[derive(Default)]
struct More {
    before: usize,
    code: Vec<Instruction>,
}

impl More {
    fn after(map: &MapKernel) -> More {
        More { before: map.code.len(), code: Vec::new() }
    }

    fn push(&mut self, step: Step, dtype: DType, rank: LoopLevel) -> Value {
        self.code.push(Instruction { step, dtype, rank });
        self.before + self.code.len() - 1
    }

    /// What `v` looks up, if it is in a range of the table.
    fn look_up(&mut self, map: &MapKernel, v: Value, table: &Table, range: &Range<usize>) -> Value {
        let Instruction { dtype, rank, .. } = map.code[v];
        let (index, counts, of_rank) = self.index(map, table);
        let before = self.push(Step::Literal(Scalar::Int(range.start as i64)), counts, LoopLevel::Uniform);
        let index = self.push(Step::Binary(BinaryOp::Sub, index, before), counts, of_rank);
        let mut access = table.access.clone();
        access.position.offset += table.stride * range.start as isize;
        self.push(Step::Gather { access, index, stride: table.stride, extent: range.len() }, dtype, rank)
    }

    /// Whether an index is in a range.
    fn is_within(&mut self, map: &MapKernel, table: &Table, range: &Range<usize>) -> Value {
        let (index, counts, rank) = self.index(map, table);
        let ends = [range.start, range.end];
        let [start, end] =
            ends.map(|end| self.push(Step::Literal(Scalar::Int(end as i64)), counts, LoopLevel::Uniform));
        let low = self.push(Step::Binary(BinaryOp::Le, start, index), DType::Bool, rank);
        let high = self.push(Step::Binary(BinaryOp::Lt, index, end), DType::Bool, rank);
        self.push(Step::Binary(BinaryOp::And, low, high), DType::Bool, rank)
    }

    /// The index in a type that counts as far as the table goes, which a byte does not.
    fn index(&mut self, map: &MapKernel, table: &Table) -> (Value, DType, LoopLevel) {
        let Instruction { dtype, rank, .. } = map.code[table.index];
        let counts = dtype.of_positions();
        (self.push(Step::Cast(table.index), counts, rank), counts, rank)
    }
}

/// A chunk in smaller ones that all fit: each is halved along the loop that makes it cost the least, or else the outermost.
/// They come in order then.
fn cut_down(
    whole: Chunk,
    fits: impl Fn(&[Range<usize>]) -> bool,
    cost: impl Fn(&[Range<usize>]) -> usize,
) -> Option<Vec<Chunk>> {
    let (mut chunks, mut rest) = (Vec::new(), vec![whole]);
    while let Some(chunk) = rest.pop() {
        if fits(&chunk) {
            chunks.push(chunk);
        } else {
            let dearer = |halves: &[Chunk; 2]| halves.iter().map(|half| cost(half)).max();
            let [one, two] = halves(&chunk).min_by_key(dearer)?;
            rest.extend([two, one]);
        }
    }
    Some(chunks)
}

/// The halves of a chunk along each of its loops that can be halved.
fn halves(chunk: &[Range<usize>]) -> impl Iterator<Item = [Chunk; 2]> {
    (0..chunk.len()).filter(|&l| chunk[l].len() > 1).map(|l| {
        let Range { start, end } = chunk[l];
        let middle = start.midpoint(end);
        [start..middle, middle..end].map(|range| {
            let mut half = chunk.to_vec();
            half[l] = range;
            half
        })
    })
}

fn store(value: Value, slot: Slot, position: Affine) -> Store {
    Store { value, access: Access { slot, position } }
}

fn load(slot: Slot, position: Affine) -> Step {
    Step::Load { access: Access { slot, position }, checks: Vec::new(), fill: Scalar::Int(0) }
}

/// The type that folds are computed in: sums of halves are kept wide until their end.
fn widened(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// The number of an iteration of the first loops, which have these extents, of so many.
fn flat(extents: &[usize], loops: usize) -> Affine {
    let mut position = Affine::constant(loops, 0);
    let mut stride = 1;
    for k in (0..extents.len()).rev() {
        position.coefficients[k] = stride;
        stride *= extents[k] as isize;
    }
    position
}

fn scaled(mut position: Affine, factor: usize) -> Affine {
    position.coefficients.iter_mut().for_each(|c| *c *= factor as isize);
    position
}
