//! A machine for the pickles of state dictionaries. It knows the few opcodes and the few names that these need, makes
//! plain values of them and runs nothing; whatever else a file asks for is an error that names it.
//!
//! Every byte of a pickle makes at most a constant amount of values, since containers are held by number.

use crate::io::types::FileType;
use crate::printable::printable_cell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

/// A value of the machine; containers, tensors and storages are numbers of the machine's lists.
#[derive(Clone)]
pub(super) enum Item {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    /// A list or a tuple.
    Sequence(usize),
    Dict(usize),
    Global(Rc<str>),
    Storage(usize),
    Tensor(usize),
}

/// For messages: a text may be as long as the file, and stand in the file very often.
impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::None => f.write_str("None"),
            Item::Bool(yes) => write!(f, "{yes}"),
            Item::Int(n) => write!(f, "{n}"),
            Item::Float(x) => write!(f, "{x}"),
            Item::Text(text) => write!(f, "{:?}", printable_cell(text, MAX_SHOWN_CHARS)),
            Item::Sequence(_) => f.write_str("a list"),
            Item::Dict(_) => f.write_str("a dictionary"),
            Item::Global(name) => f.write_str(name),
            Item::Storage(_) => f.write_str("a storage"),
            Item::Tensor(_) => f.write_str("a tensor"),
        }
    }
}

/// A tensor: a view of a storage.
#[derive(Clone, Debug)]
pub(super) struct TensorView {
    /// The name of the entry with the elements.
    pub storage: Rc<str>,
    pub dtype: &'static FileType,
    /// In elements, as the strides.
    pub offset: usize,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
}

/// Everything that a pickle made.
#[derive(Default)]
pub(super) struct Pickle {
    pub root: Option<Item>,
    pub sequences: Vec<Vec<Item>>,
    pub dicts: Vec<Vec<(Item, Item)>>,
    pub tensors: Vec<TensorView>,
    storages: Vec<(Rc<str>, &'static FileType)>,
}

/// Longer lists of arguments, and shapes of more axes, are refused: a small file could have them copied very often.
const MAX_ITEMS: usize = 64;

/// Longer names of Python's are refused: those that are known are short, and one may be put together very often.
const MAX_GLOBAL_BYTES: usize = 256;
/// What a message shows of a text.
const MAX_SHOWN_CHARS: usize = 100;

/// Runs a pickle.
pub(super) fn run(bytes: &[u8]) -> Result<Pickle, String> {
    let mut machine = Machine { rest: bytes, ..Machine::default() };
    let total = bytes.len();
    loop {
        let at = total - machine.rest.len();
        match machine.step() {
            Ok(false) => {}
            Ok(true) => return Ok(machine.made),
            Err(what) => return Err(format!("its pickle cannot be read: {what} (at byte {at})")),
        }
    }
}

#[derive(Default)]
struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Item>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: HashMap<u32, Item>,
    made: Pickle,
}

type Step<T = ()> = Result<T, String>;

impl<'a> Machine<'a> {
    fn take(&mut self, count: usize) -> Step<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(taken)
    }

    /// An unsigned little-endian number of up to 8 bytes.
    fn number(&mut self, bytes: usize) -> Step<u64> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    fn text(&mut self, bytes: u64) -> Step<Rc<str>> {
        let bytes = self.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")?.into())
    }

    /// A name that ends with a line.
    fn line(&mut self) -> Step<&'a str> {
        let end = self.rest.iter().position(|&b| b == b'\n').ok_or("a name does not end")?;
        let line = self.take(end + 1)?;
        std::str::from_utf8(&line[..end]).map_err(|_| "a name is not UTF-8".to_string())
    }

    fn pop(&mut self) -> Step<Item> {
        // What stands below a mark is not to be touched.
        if self.marks.last().is_some_and(|&m| self.stack.len() <= m) {
            return Err("its stack is empty".to_string());
        }
        self.stack.pop().ok_or_else(|| "its stack is empty".to_string())
    }

    fn until_mark(&mut self) -> Step<Vec<Item>> {
        let mark = self.marks.pop().ok_or("a mark is missing")?;
        Ok(self.stack.split_off(mark))
    }

    fn push(&mut self, item: Item) {
        self.stack.push(item);
    }

    fn push_sequence(&mut self, items: Vec<Item>) {
        self.made.sequences.push(items);
        self.push(Item::Sequence(self.made.sequences.len() - 1));
    }

    fn push_dict(&mut self) {
        self.made.dicts.push(Vec::new());
        self.push(Item::Dict(self.made.dicts.len() - 1));
    }

    /// The last `count` items as a tuple.
    fn tuple(&mut self, count: usize) -> Step {
        let mut items = (0..count).map(|_| self.pop()).collect::<Step<Vec<Item>>>()?;
        items.reverse();
        self.push_sequence(items);
        Ok(())
    }

    fn append(&mut self, items: Vec<Item>) -> Step {
        match self.stack.last() {
            Some(Item::Sequence(k)) => self.made.sequences[*k].extend(items),
            other => return Err(format!("{other:?} is no list to append to")),
        }
        Ok(())
    }

    fn set_items(&mut self, items: Vec<Item>) -> Step {
        let Some(Item::Dict(k)) = self.stack.last() else {
            return Err(format!("{:?} is no dictionary to add to", self.stack.last()));
        };
        let mut items = items.into_iter();
        while let (Some(key), value) = (items.next(), items.next()) {
            let value = value.ok_or("a key has no value")?;
            self.made.dicts[*k].push((key, value));
        }
        Ok(())
    }

    fn remember(&mut self, place: u64) -> Step {
        let item = self.stack.last().ok_or("its stack is empty")?.clone();
        self.memo.insert(u32::try_from(place).map_err(|_| "a place of the memo is too large")?, item);
        Ok(())
    }

    fn recall(&mut self, place: u64) -> Step {
        let item =
            u32::try_from(place).ok().and_then(|p| self.memo.get(&p)).ok_or("the memo lacks an item")?;
        self.stack.push(item.clone());
        Ok(())
    }

    /// One opcode; whether it was the last.
    fn step(&mut self) -> Step<bool> {
        let opcode = self.take(1)?[0];
        match opcode {
            // The version, and the lengths of frames, tell nothing new.
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'N' => self.push(Item::None),
            0x88 => self.push(Item::Bool(true)),
            0x89 => self.push(Item::Bool(false)),
            b'K' => self.int(1)?,
            b'M' => self.int(2)?,
            b'J' => {
                let n = self.number(4)? as u32;
                self.push(Item::Int(i64::from(n.cast_signed())));
            }
            0x8a => self.long()?,
            b'G' => {
                let bits = self.number(8)?.swap_bytes();
                self.push(Item::Float(f64::from_bits(bits)));
            }
            b'X' => self.push_text(4)?,
            0x8c => self.push_text(1)?,
            0x8d => self.push_text(8)?,
            b'(' => self.marks.push(self.stack.len()),
            b']' => self.push_sequence(Vec::new()),
            b')' => self.push_sequence(Vec::new()),
            b'}' => self.push_dict(),
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b't' => {
                let items = self.until_mark()?;
                self.push_sequence(items);
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.until_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(vec![key, value])?;
            }
            b'u' => {
                let items = self.until_mark()?;
                self.set_items(items)?;
            }
            b'q' => {
                let place = self.number(1)?;
                self.remember(place)?;
            }
            b'r' => {
                let place = self.number(4)?;
                self.remember(place)?;
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            b'h' => {
                let place = self.number(1)?;
                self.recall(place)?;
            }
            b'j' => {
                let place = self.number(4)?;
                self.recall(place)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Item::Text(name), Item::Text(module)) = (name, module) else {
                    return Err("a global's name is no text".to_string());
                };
                self.global(&module, &name)?;
            }
            b'Q' => self.storage()?,
            b'R' => self.call()?,
            b'b' => self.build()?,
            b'.' => {
                self.made.root = Some(self.pop()?);
                return Ok(true);
            }
            other => return Err(format!("opcode 0x{other:02x} is not one that state dictionaries need")),
        }
        Ok(false)
    }

    fn int(&mut self, bytes: usize) -> Step {
        let n = self.number(bytes)?;
        self.push(Item::Int(n as i64));
        Ok(())
    }

    /// A two's complement number of any length; those beyond i64 have no use here.
    fn long(&mut self) -> Step {
        let length = self.number(1)? as usize;
        if length > 8 {
            return Err(format!("a whole number has {length} bytes; at most 8 are read"));
        }
        let n = self.number(length)?;
        let unused = 64 - 8 * length as u32;
        self.push(Item::Int(if length == 0 { 0 } else { (n << unused).cast_signed() >> unused }));
        Ok(())
    }

    fn push_text(&mut self, bytes: usize) -> Step {
        let length = self.number(bytes)?;
        let text = self.text(length)?;
        self.push(Item::Text(text));
        Ok(())
    }

    /// A name of Python's; only those that mean something here are taken.
    fn global(&mut self, module: &str, name: &str) -> Step {
        if module.len().saturating_add(name.len()) > MAX_GLOBAL_BYTES {
            let shown = printable_cell(name, MAX_SHOWN_CHARS);
            return Err(format!("the name {shown:?} of Python's is longer than any that is known"));
        }
        let name = &*format!("{module}.{name}");
        let of_torch = name.strip_prefix("torch.storage.").or(name.strip_prefix("torch."));
        let is_type =
            of_torch.is_some_and(|n| FileType::of_torch_storage(n).or(FileType::of_torch_dtype(n)).is_some());
        if !is_type && !CALLABLE.iter().any(|(known, _)| *known == name) {
            return Err(format!(
                "it asks for {name}, which is not part of a state dictionary; nothing was run. Save only tensors, \
                 numbers and texts: torch.save(model.state_dict(), path)"
            ));
        }
        self.push(Item::Global(name.into()));
        Ok(())
    }

    /// A reference to elements outside: ("storage", class, entry, device, count).
    fn storage(&mut self) -> Step {
        let id = self.pop()?;
        let Some([Item::Text(kind), Item::Global(class), Item::Text(entry), ..]) = self.items(&id) else {
            return Err(format!("{id:?} is no reference to a storage"));
        };
        let dtype = class.rsplit('.').next().and_then(FileType::of_torch_storage);
        let (Some(dtype), "storage") = (dtype, &**kind) else {
            return Err(format!("{kind:?} of {class} is no storage"));
        };
        self.made.storages.push((entry.clone(), dtype));
        self.push(Item::Storage(self.made.storages.len() - 1));
        Ok(())
    }

    fn items(&self, item: &Item) -> Option<&[Item]> {
        match item {
            Item::Sequence(k) => Some(&self.made.sequences[*k]),
            _ => None,
        }
    }

    fn call(&mut self) -> Step {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let Item::Global(name) = &function else { return Err(format!("{function:?} cannot be called")) };
        let Some((_, call)) = CALLABLE.iter().find(|(known, _)| *known == &**name) else {
            return Err(format!("{name} cannot be called"));
        };
        let items = self.items(&arguments).filter(|items| items.len() <= MAX_ITEMS);
        let Some(items) = items.map(<[Item]>::to_vec) else {
            return Err(format!("{name} is called with {arguments:?}"));
        };
        call(self, &items).map_err(|what| format!("{name}: {what}"))
    }

    /// Attributes of an object: those of an ordered dictionary (`_metadata`) are of no use here.
    fn build(&mut self) -> Step {
        self.pop()?;
        match self.stack.last() {
            Some(Item::Dict(_) | Item::Tensor(_)) => Ok(()),
            other => Err(format!("{other:?} cannot be given attributes")),
        }
    }
}

type Callable = fn(&mut Machine<'_>, &[Item]) -> Step;

/// What may be called, and what it makes.
const CALLABLE: [(&str, Callable); 6] = [
    ("collections.OrderedDict", |machine, arguments| {
        machine.push_dict();
        if arguments.is_empty() { Ok(()) } else { Err("its items are given at once".to_string()) }
    }),
    ("torch._utils._rebuild_tensor_v2", |machine, arguments| tensor(machine, arguments, None)),
    ("torch._utils._rebuild_tensor_v3", |machine, arguments| {
        let dtype = match arguments.get(6) {
            Some(Item::Global(name)) => name.strip_prefix("torch.").and_then(FileType::of_torch_dtype),
            _ => None,
        };
        tensor(machine, arguments, Some(dtype.ok_or("its element type is not known")?))
    }),
    ("torch._utils._rebuild_parameter", first),
    ("torch._utils._rebuild_parameter_with_state", first),
    ("torch.Size", first),
];

/// The first argument itself: a parameter is its tensor.
fn first(machine: &mut Machine<'_>, arguments: &[Item]) -> Step {
    let item = arguments.first().ok_or("it is called without arguments")?;
    machine.push(item.clone());
    Ok(())
}

fn tensor(machine: &mut Machine<'_>, arguments: &[Item], dtype: Option<&'static FileType>) -> Step {
    let [Item::Storage(storage), Item::Int(offset), shape, strides, ..] = arguments else {
        return Err(format!("it is called with {arguments:?}"));
    };
    let sizes = |item: &Item| -> Option<Vec<usize>> {
        let size = |n: &Item| if let Item::Int(n) = n { usize::try_from(*n).ok() } else { None };
        machine.items(item).filter(|items| items.len() <= MAX_ITEMS)?.iter().map(size).collect()
    };
    let (Some(shape), Some(strides)) = (sizes(shape), sizes(strides)) else {
        return Err("its shape or its strides are no tuple of sizes".to_string());
    };
    if shape.len() != strides.len() {
        return Err(format!("shape {shape:?} and strides {strides:?} do not fit each other"));
    }
    let offset = usize::try_from(*offset).map_err(|_| format!("it begins at element {offset}"))?;
    let (storage, stored) = machine.made.storages[*storage].clone();
    let dtype = dtype.unwrap_or(stored);
    machine.made.tensors.push(TensorView { storage, dtype, offset, shape, strides });
    machine.push(Item::Tensor(machine.made.tensors.len() - 1));
    Ok(())
}
