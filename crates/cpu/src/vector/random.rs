//! Random words of consecutive counters, a block at a time.

use super::isa::leveled;
use volta_ir::random::threefry;

leveled! {
    /// The random bits of the counters `first`, `first + 1`, ...: their first words go to `out0`,
    /// their second to `out1`. The low word of a counter is `counter[0]`, the high `counter[1]`.
    pub(crate) fn threefry_block(key: [u32; 2], first: u64, out0: &mut [u32], out1: &mut [u32]) {
        assert_eq!(out0.len(), out1.len(), "block lengths differ");
        // Chunks short enough that 32-bit lane numbers carry into the high word at most once.
        let chunk = 1 << 16;
        let mut start = first;
        for (out0, out1) in out0.chunks_mut(chunk).zip(out1.chunks_mut(chunk)) {
            let (low, high) = (start as u32, (start >> 32) as u32);
            for (i, (o0, o1)) in (0u32..).zip(out0.iter_mut().zip(out1.iter_mut())) {
                let l = low.wrapping_add(i);
                let h = high.wrapping_add(u32::from(l < low));
                [*o0, *o1] = threefry(key, [l, h]);
            }
            start = start.wrapping_add(out0.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::isa::forced::assert_levels_agree;

    #[test]
    fn known_answers() {
        const ALL: u32 = u32::MAX;
        let cases = [
            ([0, 0], [0, 0], [0x6b20_0159, 0x99ba_4efe]),
            ([ALL, ALL], [ALL, ALL], [0x1cb9_96fc, 0xbb00_2be7]),
            ([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3], [0xc492_3a9c, 0x483d_f7a0]),
        ];
        for (key, counter, bits) in cases {
            assert_eq!(threefry(key, counter), bits);
        }
    }

    #[test]
    fn blocks_count_across_words() {
        let (key, n) = ([5, 9], 70_001);
        for first in [0, (1 << 32) - 3, (7 << 32) - 65_537, u64::MAX - 2] {
            assert_levels_agree(|| {
                let (mut a, mut b) = (vec![0; n], vec![0; n]);
                threefry_block(key, first, &mut a, &mut b);
                for i in (0..10).chain(65_530..65_540).chain([n - 1]) {
                    let c = first.wrapping_add(i as u64);
                    assert_eq!([a[i], b[i]], threefry(key, [c as u32, (c >> 32) as u32]));
                }
                (a, b)
            });
        }
    }
}
