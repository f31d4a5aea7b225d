"""Functions that are methods of tensors too: `volta.exp(x)` is `x.exp()`.

Written by python/tools/make_stubs.py: change that, or the documentation in Rust, and run it again.
"""

import builtins
from collections.abc import Sequence
from typing import Any, overload

from . import return_types
from ._volta import DTypeLike, Number, Operand, Size, Tensor


def abs(input: Tensor) -> Tensor:
    """|x|"""

def absolute(input: Tensor) -> Tensor:
    """|x|"""

def add(input: Tensor, other: Operand, *, alpha: Number | None = None) -> Tensor:
    """self + alpha * other"""

def all(input: Tensor, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
    """Whether all elements are true (not zero), of everything or over dimensions."""

def allclose(input: Tensor, other: Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08) -> builtins.bool:
    """Whether all elements are close."""

def amax(input: Tensor, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The largest elements over dimensions; NaN wins. The gradient is shared equally among ties."""

def amin(input: Tensor, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The smallest elements over dimensions; NaN wins. The gradient is shared equally among ties."""

def any(input: Tensor, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
    """Whether any element is true (not zero), of everything or over dimensions."""

def argmax(input: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The position (int64) of the largest element, of all or along a dimension; the first of ties."""

def argmin(input: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The position (int64) of the smallest element, of all or along a dimension; the first of ties."""

def argsort(input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The positions (int64) that put a dimension in order."""

def bitwise_and(input: Tensor, other: Operand) -> Tensor:
    """The bits that both integers have."""

def bitwise_not(input: Tensor) -> Tensor:
    """The bits that an integer does not have."""

def bitwise_or(input: Tensor, other: Operand) -> Tensor:
    """The bits that at least one of two integers has."""

def bitwise_xor(input: Tensor, other: Operand) -> Tensor:
    """The bits that exactly one of two integers has."""

def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The matrix products of two batches of matrices."""

@overload
def broadcast_to(input: Tensor, *size: Size) -> Tensor:
    """`expand` to a shape."""

@overload
def broadcast_to(input: Tensor, *, size: Size) -> Tensor:
    """`expand` to a shape."""

def ceil(input: Tensor) -> Tensor:
    """The next integer above."""

def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = 0) -> list[Tensor]:
    """At most `chunks` equal parts along a dimension; the last may be smaller."""

def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """x held between bounds, numbers or tensors, of which one may be missing. The gradient is 1 inside, 0 at a number and
    outside; outside of a tensor it is the tensor's.
    """

def clip(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """x held between bounds, numbers or tensors, of which one may be missing. The gradient is 1 inside, 0 at a number and
    outside; outside of a tensor it is the tensor's.
    """

def clone(input: Tensor) -> Tensor:
    """A copy with memory of its own; gradients flow through it."""

def concat(tensors: Sequence[Tensor], dim: builtins.int = 0) -> Tensor:
    """Tensors one behind the other along a dimension."""

def concatenate(tensors: Sequence[Tensor], dim: builtins.int = 0) -> Tensor:
    """Tensors one behind the other along a dimension."""

def cos(input: Tensor) -> Tensor:
    """Cosine of radians."""

def cosine_similarity(input: Tensor, other: Tensor, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> Tensor:
    """The cosine of the angle between vectors along a dimension."""

def cumprod(input: Tensor, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The running product along a dimension. Its time grows with the square of the dimension."""

def cumsum(input: Tensor, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The running sum along a dimension; integers are summed as int64."""

def detach(input: Tensor) -> Tensor:
    """The same value, cut from the tape."""

def diff(input: Tensor, n: builtins.int = 1, dim: builtins.int = -1) -> Tensor:
    """Each element less the one before along a dimension, `n` times over."""

def div(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """self / other, or the quotient rounded: `rounding_mode='floor'` or `'trunc'`."""

def divide(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """self / other, or the quotient rounded: `rounding_mode='floor'` or `'trunc'`."""

def dot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors."""

def elu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """x above zero, alpha * (exp(x) - 1) below."""

def eq(input: Tensor, other: Operand) -> Tensor:
    """self == other"""

def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether both have the same shape and equal elements."""

def erf(input: Tensor) -> Tensor:
    """The Gauss error function."""

def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), exact where that is small."""

def exp(input: Tensor) -> Tensor:
    """e to the power of x."""

def exp2(input: Tensor) -> Tensor:
    """2 to the power of x."""

def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to another tensor's shape."""

def expm1(input: Tensor) -> Tensor:
    """exp(x) - 1, exact near zero."""

def flatten(input: Tensor, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one."""

@overload
def flip(input: Tensor, *dims: Size) -> Tensor:
    """Dimensions in reverse order of elements."""

@overload
def flip(input: Tensor, *, dims: Size) -> Tensor:
    """Dimensions in reverse order of elements."""

def floor(input: Tensor) -> Tensor:
    """The next integer below."""

def floor_divide(input: Tensor, other: Operand) -> Tensor:
    """The quotient rounded down. Integers by zero give 0."""

def gather(input: Tensor, dim: builtins.int, index: Tensor) -> Tensor:
    """Picks along a dimension: `out[i][j] = self[index[i][j]][j]` for dimension 0."""

def ge(input: Tensor, other: Operand) -> Tensor:
    """self >= other"""

def gelu(input: Tensor, approximate: str = 'none') -> Tensor:
    """x * Phi(x) with the exact Phi, or by the hyperbolic tangent with `approximate='tanh'`."""

def greater(input: Tensor, other: Operand) -> Tensor:
    """self > other"""

def greater_equal(input: Tensor, other: Operand) -> Tensor:
    """self >= other"""

def gt(input: Tensor, other: Operand) -> Tensor:
    """self > other"""

def hardsigmoid(input: Tensor) -> Tensor:
    """(x + 3) / 6 held between 0 and 1."""

def hardswish(input: Tensor) -> Tensor:
    """x * hardsigmoid(x)"""

def hardtanh(input: Tensor, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
    """x held between two bounds, where its gradient is zero."""

def index_add(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number | None = None) -> Tensor:
    """A copy with `alpha` times the slices of `source` added along a dimension where a vector of positions says; repeated
    positions add up.
    """

def index_select(input: Tensor, dim: builtins.int, index: Tensor) -> Tensor:
    """Whole slices of a dimension, picked by a vector of positions."""

def is_tensor(obj: Any) -> builtins.bool:
    """Whether an object is a tensor."""

def isclose(input: Tensor, other: Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08) -> Tensor:
    """Where |self - other| <= atol + rtol * |other|."""

def isfinite(input: Tensor) -> Tensor:
    """True where neither NaN nor infinite."""

def isinf(input: Tensor) -> Tensor:
    """True where infinite."""

def isnan(input: Tensor) -> Tensor:
    """True where NaN."""

def le(input: Tensor, other: Operand) -> Tensor:
    """self <= other"""

def leaky_relu(input: Tensor, negative_slope: builtins.float = 0.01) -> Tensor:
    """x above zero, negative_slope * x below."""

def less(input: Tensor, other: Operand) -> Tensor:
    """self < other"""

def less_equal(input: Tensor, other: Operand) -> Tensor:
    """self <= other"""

def log(input: Tensor) -> Tensor:
    """Natural logarithm."""

def log1p(input: Tensor) -> Tensor:
    """log(1 + x), exact near zero."""

def log2(input: Tensor) -> Tensor:
    """Logarithm to base 2."""

def log_softmax(input: Tensor, dim: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
    """The logarithm of `softmax`, exact also where that is nearly zero."""

def logical_and(input: Tensor, other: Operand) -> Tensor:
    """Both true (not zero)."""

def logical_not(input: Tensor) -> Tensor:
    """True where zero or false."""

def logical_or(input: Tensor, other: Operand) -> Tensor:
    """At least one true (not zero)."""

def logical_xor(input: Tensor, other: Operand) -> Tensor:
    """Exactly one true (not zero)."""

def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), exact where that is nearly 0 or 1."""

def logsumexp(input: Tensor, dim: Size, keepdim: builtins.bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over dimensions, without overflow."""

def lt(input: Tensor, other: Operand) -> Tensor:
    """self < other"""

def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """`value`, a number or a tensor without dimensions, where the mask (bool, broadcast) is true."""

def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask, broadcast with the tensor, is true, as a vector."""

def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product: vectors count as a row on the left and a column on the right, other dimensions broadcast."""

@overload
def max(input: Tensor) -> Tensor:
    """The largest element of all; or, along a dimension, the largest elements and their positions (int64), as a
    tuple `(values, indices)`; or the larger of two tensors, elementwise. NaN wins.
    """

@overload
def max(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.max:
    """The largest element of all; or, along a dimension, the largest elements and their positions (int64), as a
    tuple `(values, indices)`; or the larger of two tensors, elementwise. NaN wins.
    """

@overload
def max(input: Tensor, dim: Tensor) -> Tensor:
    """The largest element of all; or, along a dimension, the largest elements and their positions (int64), as a
    tuple `(values, indices)`; or the larger of two tensors, elementwise. NaN wins.
    """

def maximum(input: Tensor, other: Operand) -> Tensor:
    """The larger one, elementwise; NaN wins."""

def mean(input: Tensor, dim: Size | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The mean of all elements, or over dimensions; of none it is NaN."""

@overload
def median(input: Tensor) -> Tensor:
    """The middle element of all, the lower one of two; or, along a dimension, `(values, indices)`. NaN wins."""

@overload
def median(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.median:
    """The middle element of all, the lower one of two; or, along a dimension, `(values, indices)`. NaN wins."""

@overload
def min(input: Tensor) -> Tensor:
    """The smallest element of all; or, along a dimension, the smallest elements and their positions (int64), as a
    tuple `(values, indices)`; or the smaller of two tensors, elementwise. NaN wins.
    """

@overload
def min(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.min:
    """The smallest element of all; or, along a dimension, the smallest elements and their positions (int64), as a
    tuple `(values, indices)`; or the smaller of two tensors, elementwise. NaN wins.
    """

@overload
def min(input: Tensor, dim: Tensor) -> Tensor:
    """The smallest element of all; or, along a dimension, the smallest elements and their positions (int64), as a
    tuple `(values, indices)`; or the smaller of two tensors, elementwise. NaN wins.
    """

def minimum(input: Tensor, other: Operand) -> Tensor:
    """The smaller one, elementwise; NaN wins."""

def mish(input: Tensor) -> Tensor:
    """x * tanh(log(1 + exp(x)))"""

def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The matrix product of two matrices."""

def movedim(input: Tensor, source: Size, destination: Size) -> Tensor:
    """A dimension, or several, at other places."""

def mul(input: Tensor, other: Operand) -> Tensor:
    """self * other"""

def multiply(input: Tensor, other: Operand) -> Tensor:
    """self * other"""

def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""

def narrow(input: Tensor, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """`length` elements of a dimension from `start`."""

def ne(input: Tensor, other: Operand) -> Tensor:
    """self != other"""

def neg(input: Tensor) -> Tensor:
    """-x"""

def negative(input: Tensor) -> Tensor:
    """-x"""

def nonzero(input: Tensor, *, as_tuple: builtins.bool = False) -> Any:
    """The positions of all elements that are not zero: a row each, or, with `as_tuple=True`, a vector for each
    dimension.
    """

def norm(input: Tensor, p: builtins.float | str | None = None, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The p-norm of all elements, or over dimensions: `p` may be 0, infinity or its negative too."""

def normalize(input: Tensor, p: builtins.float = 2.0, dim: builtins.int = 1, eps: builtins.float = 1e-12) -> Tensor:
    """Divided by its p-norm along a dimension, or by `eps` where the norm is smaller."""

def not_equal(input: Tensor, other: Operand) -> Tensor:
    """self != other"""

def numel(input: Tensor) -> builtins.int:
    """The number of elements."""

def one_hot(input: Tensor, num_classes: builtins.int) -> Tensor:
    """A row of `num_classes` for every index, 1 at the index and 0 elsewhere."""

def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every element of one vector by every element of another."""

def pad(input: Tensor, pad: Sequence[builtins.int], mode: str = 'constant', value: Number | None = None) -> Tensor:
    """Padding as PyTorch has it: (before, after) of the last dimension, then of the one before, ... Negative numbers
    cut.
    """

@overload
def permute(input: Tensor, *dims: Size) -> Tensor:
    """The dimensions in another order."""

@overload
def permute(input: Tensor, *, dims: Size) -> Tensor:
    """The dimensions in another order."""

def pow(input: Tensor, exponent: Operand) -> Tensor:
    """self to the power of `exponent`."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above zero, weight * x below, with one weight or one for every channel (dimension 1)."""

def prod(input: Tensor, dim: Size | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The product of all elements, or over dimensions. Integers are multiplied as int64."""

def ravel(input: Tensor) -> Tensor:
    """All elements as a vector."""

def reciprocal(input: Tensor) -> Tensor:
    """1 / x"""

def relu(input: Tensor) -> Tensor:
    """max(x, 0); NaN stays NaN."""

def relu6(input: Tensor) -> Tensor:
    """x held between 0 and 6."""

def remainder(input: Tensor, other: Operand) -> Tensor:
    """self - other * floor(self / other): has the sign of `other`. Integers by zero give 0."""

def repeat_interleave(input: Tensor, repeats: builtins.int, dim: builtins.int | None = None) -> Tensor:
    """Every element repeated in place, along a dimension or of the flattened tensor."""

@overload
def reshape(input: Tensor, *shape: Size) -> Tensor:
    """The same elements in order under another shape; one size may be -1 and follows from the others."""

@overload
def reshape(input: Tensor, *, shape: Size) -> Tensor:
    """The same elements in order under another shape; one size may be -1 and follows from the others."""

def roll(input: Tensor, shifts: Size, dims: Size | None = None) -> Tensor:
    """Elements moved along dimensions; what leaves at one end comes back at the other. Without `dims` the flattened
    tensor is moved.
    """

def round(input: Tensor) -> Tensor:
    """The nearest integer, halves to even."""

def rsqrt(input: Tensor) -> Tensor:
    """1 / square root of x"""

def rsub(input: Tensor, other: Operand) -> Tensor:
    """other - self"""

def scatter_add(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
    """A copy with the elements of `src` added at `index` along a dimension; repeated indices add up."""

def select(input: Tensor, dim: builtins.int, index: Tensor) -> Tensor:
    """One element of a dimension, which goes."""

def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))"""

def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1; of NaN it is 0."""

def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x), also called swish."""

def sin(input: Tensor) -> Tensor:
    """Sine of radians."""

def softmax(input: Tensor, dim: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, divided by their sum."""

def softplus(input: Tensor, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above `threshold`."""

def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)"""

def sort(input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> return_types.sort:
    """A dimension in order, with the positions (int64) its elements had: `(values, indices)`. Equal elements keep
    their order; NaN counts as the largest.
    """

def split(input: Tensor, split_size_or_sections: Size, dim: builtins.int = 0) -> list[Tensor]:
    """Parts along a dimension: of one size, the last may be smaller, or of the sizes in a list."""

def sqrt(input: Tensor) -> Tensor:
    """Square root; NaN below zero."""

def square(input: Tensor) -> Tensor:
    """x * x"""

def squeeze(input: Tensor, dim: Size | None = None) -> Tensor:
    """Without dimensions of size 1: all of them, one or several."""

def std(input: Tensor, dim: Size | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
    """The standard deviation of all elements, or over dimensions. Where it is 0 its gradient is 0."""

def sub(input: Tensor, other: Operand, *, alpha: Number | None = None) -> Tensor:
    """self - alpha * other"""

def subtract(input: Tensor, other: Operand, *, alpha: Number | None = None) -> Tensor:
    """self - alpha * other"""

def sum(input: Tensor, dim: Size | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of all elements, or over dimensions. Integers are summed as int64."""

def swapaxes(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two dimensions exchanged."""

def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two dimensions exchanged."""

def t(input: Tensor) -> Tensor:
    """The two dimensions of a matrix exchanged."""

def tan(input: Tensor) -> Tensor:
    """Tangent of radians."""

def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""

@overload
def tile(input: Tensor, *dims: Size) -> Tensor:
    """`repeat` that takes fewer numbers than dimensions, for the last ones."""

@overload
def tile(input: Tensor, *, dims: Size) -> Tensor:
    """`repeat` that takes fewer numbers than dimensions, for the last ones."""

def topk(input: Tensor, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True) -> return_types.topk:
    """The `k` largest (or smallest) elements of a dimension in order, with their positions (int64)."""

def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two dimensions exchanged."""

def tril(input: Tensor, diagonal: builtins.int = 0) -> Tensor:
    """Zeros above a diagonal of the last two dimensions."""

def triu(input: Tensor, diagonal: builtins.int = 0) -> Tensor:
    """Zeros below a diagonal of the last two dimensions."""

def true_divide(input: Tensor, other: Operand) -> Tensor:
    """self / other; of integers too, in floats."""

def trunc(input: Tensor) -> Tensor:
    """The integer part."""

def unbind(input: Tensor, dim: builtins.int = 0) -> list[Tensor]:
    """The slices of a dimension, which goes."""

def unflatten(input: Tensor, dim: builtins.int, sizes: Size) -> Tensor:
    """One dimension as several; one size may be -1."""

def unsqueeze(input: Tensor, dim: builtins.int) -> Tensor:
    """With a new dimension of size 1."""

def var(input: Tensor, dim: Size | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
    """The variance of all elements, or over dimensions, divided by their number less `correction` (1 by default)."""
