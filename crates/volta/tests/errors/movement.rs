//! Misuse of views.

use crate::{Misuse, check, f};
use volta::{ErrorKind, Range};
use volta_testing::test;

#[test]
fn movement_names_what_does_not_fit() {
    check(&[
        misuse!(
            Shape,
            "6 elements of shape [2, 3] do not fit into shape [4, 2]",
            f(&[2, 3]),
            reshape | try_reshape([4, 2])
        ),
        misuse!(
            Shape,
            "6 elements of shape [2, 3] do not fit into shape [-1, 4]",
            f(&[2, 3]),
            reshape | try_reshape([-1, 4])
        ),
        misuse!(
            Shape,
            "6 elements of shape [2, 3] do not fit into shape [-1, -1]",
            f(&[2, 3]),
            reshape | try_reshape([-1, -1])
        ),
        misuse!(
            Shape,
            "0 elements of shape [0] do not fit into shape [0, -1]",
            f(&[0]),
            reshape | try_reshape([0, -1])
        ),
        misuse!(
            Shape,
            "order [0, 0] does not name every axis of shape [2, 3] once",
            f(&[2, 3]),
            permute | try_permute([0, 0])
        ),
        misuse!(
            Shape,
            "order [0] does not name every axis of shape [2, 3] once",
            f(&[2, 3]),
            permute | try_permute([0])
        ),
        misuse!(
            Shape,
            "axis 2 is out of range for shape [2, 3]: it must lie in -2..=1",
            f(&[2, 3]),
            transpose | try_transpose(0, 2)
        ),
        misuse!(Shape, "shape [2, 3] cannot be expanded to [4, 3]", f(&[2, 3]), expand | try_expand([4, 3])),
        misuse!(Shape, "shape [2, 3] cannot be expanded to [3]", f(&[2, 3]), expand | try_expand([3])),
        misuse!(Shape, "shape [3] cannot be expanded to [-1, 3]", f(&[3]), expand | try_expand([-1, 3])),
        misuse!(
            Shape,
            "1 pairs of padding for shape [2, 3]: one pair an axis is needed",
            f(&[2, 3]),
            pad | try_pad(&[(0, 1)], 0.0)
        ),
        misuse!(
            Shape,
            "2 ranges for shape [3]",
            f(&[3]),
            slice | try_slice([Range::from(..), Range::from(..)])
        ),
        misuse!(
            Argument,
            "the step of a range must not be 0",
            f(&[3]),
            slice | try_slice([Range::by(.., 0)])
        ),
        misuse!(
            Shape,
            "2 elements from 2 of axis 0 are outside shape [3]",
            f(&[3]),
            narrow | try_narrow(0, 2, 2)
        ),
        misuse!(Shape, "index 3 is out of range for axis 0 of shape [3]", f(&[3]), select | try_select(0, 3)),
        misuse!(
            Shape,
            "index -4 is out of range for axis -1 of shape [3]",
            f(&[3]),
            select | try_select(-1, -4)
        ),
        misuse!(
            Shape,
            "axis 1 is out of range for shape [3]: it must lie in -1..=0",
            f(&[3]),
            flip | try_flip(1)
        ),
        misuse!(
            Shape,
            "windows of 4 by step 1 and dilation 1 do not fit axis 0 of shape [3]",
            f(&[3]),
            unfold | try_unfold(0, 4, 1)
        ),
        misuse!(
            Shape,
            "windows of 2 by step 0 and dilation 1 do not fit axis 0 of shape [3]",
            f(&[3]),
            unfold | try_unfold(0, 2, 0)
        ),
        misuse!(
            Shape,
            "windows of 2 by step 1 and dilation 3 do not fit axis 0 of shape [3]",
            f(&[3]),
            windows | try_windows(0, 2, 1, 3)
        ),
        misuse!(
            Shape,
            "a new axis 3 is out of range for shape [3]: it must lie in -2..=1",
            f(&[3]),
            unsqueeze | try_unsqueeze(3)
        ),
        misuse!(
            Shape,
            "shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 axes; at most 8 are possible",
            f(&[1; 8]),
            unsqueeze | try_unsqueeze(0)
        ),
        misuse!(Shape, "axis 1 comes after axis 0 in shape [2, 3]", f(&[2, 3]), flatten | try_flatten(1, 0)),
        misuse!(
            Shape,
            "axis 1 of shape [2, 3] does not unflatten into [2, 2]",
            f(&[2, 3]),
            unflatten | try_unflatten(1, [2, 2])
        ),
        misuse!(
            Shape,
            "axis 0 of shape [] does not unflatten into [2]",
            f(&[]),
            unflatten | try_unflatten(0, [2])
        ),
    ]);
}
