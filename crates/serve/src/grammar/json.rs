//! The grammar of JSON: what every schema is made of.

use super::Edge;
use super::build::Builder;

/// The most blanks behind a line's end.
const MAX_INDENT: usize = 24;

/// The parts of JSON, each from the state where it begins.
pub struct Parts {
    /// Nothing, a blank, or a line's end and what indents the next: not more, so that no model writes blanks without end.
    pub blank: u32,
    /// A character of a string.
    pub character: u32,
    pub string: u32,
    pub number: u32,
    pub integer: u32,
    pub object: u32,
    pub value: u32,
}

impl Parts {
    pub fn new(b: &mut Builder) -> Parts {
        let blank = blank(b);
        let character = {
            let (start, end) = (b.state(), b.state());
            characters(b, start, end);
            b.end(end);
            start
        };
        let string = {
            let (start, inside, end) = (b.state(), b.state(), b.state());
            b.any_of(start, b"\"", inside);
            characters(b, inside, inside);
            b.any_of(inside, b"\"", end);
            b.end(end);
            start
        };
        let (integer, number) = (number(b, false), number(b, true));
        let value = b.state();
        let object = {
            let start = b.state();
            let member = b.state();
            let behind = member_of(b, member, string, value, blank);
            b.end(behind);
            sequence(b, start, member, blank, *b"{}");
            start
        };
        let array = {
            let start = b.state();
            sequence(b, start, value, blank, *b"[]");
            start
        };
        for part in [string, number, object, array] {
            b.empty(value, part);
        }
        for word in ["true", "false", "null"] {
            let end = b.literal(value, word);
            b.end(end);
        }
        Parts { blank, character, string, number, integer, object, value }
    }
}

/// A name, a colon and a value; the state behind them.
pub fn member_of(b: &mut Builder, state: u32, name: u32, value: u32, blank: u32) -> u32 {
    let named = b.call(state, name);
    let colon = b.literal(named, ":");
    let ready = b.call(colon, blank);
    b.call(ready, value)
}

/// Any number of items between brackets, from `start`.
pub fn sequence(b: &mut Builder, start: u32, item: u32, blank: u32, [open, close]: [u8; 2]) {
    let (opened, end) = (b.state(), b.state());
    b.any_of(start, &[open], opened);
    let first = b.call(opened, blank);
    b.any_of(first, &[close], end);
    let behind = b.call(first, item);
    let comma = b.literal(behind, ",");
    let next = b.call(comma, blank);
    b.edge(next, Edge::Call { start: item, next: behind });
    let last = b.call(behind, blank);
    b.any_of(last, &[close], end);
    b.end(end);
}

fn blank(b: &mut Builder) -> u32 {
    let start = b.state();
    b.end(start);
    let one = b.literal(start, " ");
    b.end(one);
    let mut line = b.literal(start, "\n");
    b.end(line);
    for _ in 0..MAX_INDENT {
        let next = b.state();
        b.any_of(line, b" \t", next);
        b.end(next);
        line = next;
    }
    start
}

/// The characters of a string: UTF-8, or escapes of what is no half of a pair.
fn characters(b: &mut Builder, from: u32, to: u32) {
    for (first, last) in [(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7e)] {
        b.range(from, first, last, to);
    }
    let escape = b.literal(from, "\\");
    b.any_of(escape, b"\"\\/bfnrt", to);
    let code = b.literal(escape, "u");
    let digits: Vec<u32> = (0..3).map(|_| b.state()).collect();
    let plane_d = b.state();
    let hex = |b: &mut Builder, from: u32, to: u32| {
        for (first, last) in [(b'0', b'9'), (b'a', b'f'), (b'A', b'F')] {
            b.range(from, first, last, to);
        }
    };
    for (first, last) in [(b'0', b'9'), (b'a', b'c'), (b'A', b'C'), (b'e', b'f'), (b'E', b'F')] {
        b.range(code, first, last, digits[0]);
    }
    b.any_of(code, b"dD", plane_d);
    b.range(plane_d, b'0', b'7', digits[1]);
    hex(b, digits[0], digits[1]);
    hex(b, digits[1], digits[2]);
    hex(b, digits[2], to);
    // Unicode's table 3-7.
    let more: Vec<u32> = (0..2).map(|_| b.state()).collect();
    b.range(more[0], 0x80, 0xbf, to);
    b.range(more[1], 0x80, 0xbf, more[0]);
    b.range(from, 0xc2, 0xdf, more[0]);
    b.range(from, 0xe1, 0xec, more[1]);
    b.range(from, 0xee, 0xef, more[1]);
    for (lead, first, last, behind) in [
        (0xe0, 0xa0, 0xbf, more[0]),
        (0xed, 0x80, 0x9f, more[0]),
        (0xf0, 0x90, 0xbf, more[1]),
        (0xf4, 0x80, 0x8f, more[1]),
    ] {
        let second = b.state();
        b.range(from, lead, lead, second);
        b.range(second, first, last, behind);
    }
    let second = b.state();
    b.range(from, 0xf1, 0xf3, second);
    b.range(second, 0x80, 0xbf, more[1]);
}

fn number(b: &mut Builder, with_fraction: bool) -> u32 {
    let (start, signed, zero, whole) = (b.state(), b.state(), b.state(), b.state());
    b.any_of(start, b"-", signed);
    b.empty(start, signed);
    b.any_of(signed, b"0", zero);
    b.range(signed, b'1', b'9', whole);
    b.range(whole, b'0', b'9', whole);
    b.end(zero);
    b.end(whole);
    if with_fraction {
        let (point, fraction, exponent, sign, power) =
            (b.state(), b.state(), b.state(), b.state(), b.state());
        for state in [zero, whole] {
            b.any_of(state, b".", point);
            b.any_of(state, b"eE", exponent);
        }
        b.range(point, b'0', b'9', fraction);
        b.range(fraction, b'0', b'9', fraction);
        b.any_of(fraction, b"eE", exponent);
        b.any_of(exponent, b"+-", sign);
        b.empty(exponent, sign);
        b.range(sign, b'0', b'9', power);
        // Two digits are more than any f64 needs but for the last ten powers.
        let last = b.state();
        b.range(power, b'0', b'9', last);
        for state in [fraction, power, last] {
            b.end(state);
        }
    }
    start
}
