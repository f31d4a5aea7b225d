"""The native half of the package.

Written by python/tools/make_stubs.py: change that, or the documentation in Rust, and run it again.
"""

import builtins
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from . import return_types

Number: TypeAlias = builtins.float | builtins.int | builtins.bool | np.number[Any]
Operand: TypeAlias = "Tensor | Number | np.ndarray[Any, Any]"
Size: TypeAlias = builtins.int | Sequence[builtins.int]
DTypeLike: TypeAlias = "dtype | str | type"
DeviceLike: TypeAlias = "device | str"
# Tensors have properties of these names.
_DType: TypeAlias = "dtype"
_Device: TypeAlias = "device"

__version__: str

# The methods of tensors that one table makes: they are functions, too.
_ELEMENTWISE: list[str]

# The native halves of volta.nn, volta.optim, volta.parallel, volta.distributed, volta.models and volta.files, and of volta.amp and
# volta.profiler.
_nn: Any
_optim: Any
_parallel: Any
_distributed: Any
_models: Any
_files: Any
_scopes: Any



class Tensor:
    """A tensor: numbers in a shape, on a device, that remember how they were computed.

    Tensors are lazy: an op checks its arguments at once and records what to do; reading a value computes what is
    pending. Make them with `volta.tensor`, `volta.zeros`, `volta.from_numpy`, ...
    """

    def __init__(self, data: Any = None) -> None: ...
    def __add__(self, other: Operand) -> Tensor: ...
    def __radd__(self, other: Operand) -> Tensor: ...
    def __sub__(self, other: Operand) -> Tensor: ...
    def __rsub__(self, other: Operand) -> Tensor: ...
    def __mul__(self, other: Operand) -> Tensor: ...
    def __rmul__(self, other: Operand) -> Tensor: ...
    def __truediv__(self, other: Operand) -> Tensor: ...
    def __rtruediv__(self, other: Operand) -> Tensor: ...
    def __floordiv__(self, other: Operand) -> Tensor: ...
    def __rfloordiv__(self, other: Operand) -> Tensor: ...
    def __mod__(self, other: Operand) -> Tensor: ...
    def __rmod__(self, other: Operand) -> Tensor: ...
    def __pow__(self, other: Operand) -> Tensor: ...
    def __rpow__(self, other: Operand) -> Tensor: ...
    def __matmul__(self, other: Operand) -> Tensor: ...
    def __rmatmul__(self, other: Operand) -> Tensor: ...
    def __and__(self, other: Operand) -> Tensor: ...
    def __rand__(self, other: Operand) -> Tensor: ...
    def __or__(self, other: Operand) -> Tensor: ...
    def __ror__(self, other: Operand) -> Tensor: ...
    def __xor__(self, other: Operand) -> Tensor: ...
    def __rxor__(self, other: Operand) -> Tensor: ...
    def __iadd__(self, other: Operand) -> Tensor: ...
    def __isub__(self, other: Operand) -> Tensor: ...
    def __imul__(self, other: Operand) -> Tensor: ...
    def __itruediv__(self, other: Operand) -> Tensor: ...
    def __ifloordiv__(self, other: Operand) -> Tensor: ...
    def __imod__(self, other: Operand) -> Tensor: ...
    def __ipow__(self, other: Operand) -> Tensor: ...
    def __iand__(self, other: Operand) -> Tensor: ...
    def __ior__(self, other: Operand) -> Tensor: ...
    def __ixor__(self, other: Operand) -> Tensor: ...
    def __lt__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def __le__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def __gt__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def __ge__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def __eq__(self, other: object) -> Any: ...
    def __ne__(self, other: object) -> Any: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __bool__(self) -> builtins.bool: ...
    def __float__(self) -> builtins.float: ...
    def __int__(self) -> builtins.int: ...
    def __index__(self) -> builtins.int: ...
    def __len__(self) -> builtins.int: ...
    def __hash__(self) -> builtins.int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __contains__(self, element: Operand) -> builtins.bool: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...

    @property
    def T(self) -> Tensor:
        """All dimensions in reverse order."""

    def abs(self) -> Tensor:
        """|x|"""

    def abs_(self) -> Tensor:
        """`abs` in place."""

    def absolute(self) -> Tensor:
        """|x|"""

    def add(self, other: Operand, *, alpha: Number | None = None) -> Tensor:
        """self + alpha * other"""

    def add_(self, other: Operand, *, alpha: Number | None = None) -> Tensor:
        """Adds `alpha` times a tensor or number, in place."""

    def all(self, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether all elements are true (not zero), of everything or over dimensions."""

    def allclose(self, other: Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08) -> builtins.bool:
        """Whether all elements are close."""

    def amax(self, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The largest elements over dimensions; NaN wins. The gradient is shared equally among ties."""

    def amin(self, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The smallest elements over dimensions; NaN wins. The gradient is shared equally among ties."""

    def any(self, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether any element is true (not zero), of everything or over dimensions."""

    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The position (int64) of the largest element, of all or along a dimension; the first of ties."""

    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The position (int64) of the smallest element, of all or along a dimension; the first of ties."""

    def argsort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
        """The positions (int64) that put a dimension in order."""

    def backward(self, gradient: Tensor | None = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool = False) -> None:
        """Adds the gradient of this number to `grad` of every leaf it was computed from. A tensor of several elements
        needs a `gradient` of its shape to start from. The graph is let go afterwards unless `retain_graph=True`;
        `create_graph=True` records the gradients, for gradients of them.
        """

    def bernoulli_(self, p: builtins.float = 0.5) -> Tensor:
        """Sets every element to 1 with probability `p` and to 0 elsewhere."""

    def bfloat16(self) -> Tensor:
        """The same values as bfloat16."""

    def bitwise_and(self, other: Operand) -> Tensor:
        """The bits that both integers have."""

    def bitwise_and_(self, other: Operand) -> Tensor:
        """In-place form of `try_bitwise_and` without its underscore: changes this tensor."""

    def bitwise_not(self) -> Tensor:
        """The bits that an integer does not have."""

    def bitwise_not_(self) -> Tensor:
        """`bitwise_not` in place."""

    def bitwise_or(self, other: Operand) -> Tensor:
        """The bits that at least one of two integers has."""

    def bitwise_or_(self, other: Operand) -> Tensor:
        """In-place form of `try_bitwise_or` without its underscore: changes this tensor."""

    def bitwise_xor(self, other: Operand) -> Tensor:
        """The bits that exactly one of two integers has."""

    def bitwise_xor_(self, other: Operand) -> Tensor:
        """In-place form of `try_bitwise_xor` without its underscore: changes this tensor."""

    def bmm(self, mat2: Tensor) -> Tensor:
        """The matrix products of two batches of matrices."""

    def bool(self) -> Tensor:
        """The same values as bool: whether they are not zero."""

    @overload
    def broadcast_to(self, *size: Size) -> Tensor:
        """`expand` to a shape."""

    @overload
    def broadcast_to(self, *, size: Size) -> Tensor:
        """`expand` to a shape."""

    def byte(self) -> Tensor:
        """The same values as uint8."""

    def ceil(self) -> Tensor:
        """The next integer above."""

    def ceil_(self) -> Tensor:
        """`ceil` in place."""

    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> list[Tensor]:
        """At most `chunks` equal parts along a dimension; the last may be smaller."""

    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """x held between bounds, numbers or tensors, of which one may be missing. The gradient is 1 inside, 0 at a number and
        outside; outside of a tensor it is the tensor's.
        """

    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """`clamp` in place."""

    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """x held between bounds, numbers or tensors, of which one may be missing. The gradient is 1 inside, 0 at a number and
        outside; outside of a tensor it is the tensor's.
        """

    def clone(self) -> Tensor:
        """A copy with memory of its own; gradients flow through it."""

    def contiguous(self) -> Tensor:
        """Itself: elements always lie in order."""

    def copy_(self, src: Tensor, non_blocking: builtins.bool = False) -> Tensor:
        """Takes the elements of another tensor, converted and broadcast to this one's type, device and shape."""

    def cos(self) -> Tensor:
        """Cosine of radians."""

    def cos_(self) -> Tensor:
        """`cos` in place."""

    def cosine_similarity(self, other: Tensor, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> Tensor:
        """The cosine of the angle between vectors along a dimension."""

    def cpu(self) -> Tensor:
        """The same values on the CPU."""

    def cumprod(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The running product along a dimension. Its time grows with the square of the dimension."""

    def cumsum(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The running sum along a dimension; integers are summed as int64."""

    @property
    def data(self) -> Tensor:
        """The same value cut from the tape. Assigning to it gives the tensor a new value, gradients or not."""

    @data.setter
    def data(self, value: Any) -> None: ...

    def detach(self) -> Tensor:
        """The same value, cut from the tape."""

    def detach_(self) -> Tensor:
        """Cuts this tensor from the tape."""

    @property
    def device(self) -> _Device:
        """Where it lives."""

    def diff(self, n: builtins.int = 1, dim: builtins.int = -1) -> Tensor:
        """Each element less the one before along a dimension, `n` times over."""

    def dim(self) -> builtins.int:
        """The number of dimensions."""

    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """self / other, or the quotient rounded: `rounding_mode='floor'` or `'trunc'`."""

    def div_(self, other: Operand) -> Tensor:
        """In-place form of `try_div` without its underscore: changes this tensor."""

    def divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """self / other, or the quotient rounded: `rounding_mode='floor'` or `'trunc'`."""

    def dot(self, other: Tensor) -> Tensor:
        """The inner product of two vectors."""

    def double(self) -> Tensor:
        """The same values as float64."""

    @property
    def dtype(self) -> _DType:
        """The type of the elements."""

    def element_size(self) -> builtins.int:
        """Bytes of one element."""

    def elu(self, alpha: Number = 1.0) -> Tensor:
        """x above zero, alpha * (exp(x) - 1) below."""

    def eq(self, other: Operand) -> Tensor:
        """self == other"""

    def equal(self, other: Tensor) -> builtins.bool:
        """Whether both have the same shape and equal elements."""

    def erf(self) -> Tensor:
        """The Gauss error function."""

    def erf_(self) -> Tensor:
        """`erf` in place."""

    def erfc(self) -> Tensor:
        """1 - erf(x), exact where that is small."""

    def erfc_(self) -> Tensor:
        """`erfc` in place."""

    def exp(self) -> Tensor:
        """e to the power of x."""

    def exp2(self) -> Tensor:
        """2 to the power of x."""

    def exp2_(self) -> Tensor:
        """`exp2` in place."""

    def exp_(self) -> Tensor:
        """`exp` in place."""

    @overload
    def expand(self, *size: Size) -> Tensor:
        """Repeats dimensions of size 1 (and new ones in front) without copying; -1 keeps a size."""

    @overload
    def expand(self, *, size: Size) -> Tensor:
        """Repeats dimensions of size 1 (and new ones in front) without copying; -1 keeps a size."""

    def expand_as(self, other: Tensor) -> Tensor:
        """`expand` to another tensor's shape."""

    def expm1(self) -> Tensor:
        """exp(x) - 1, exact near zero."""

    def expm1_(self) -> Tensor:
        """`expm1` in place."""

    def fill_(self, value: Operand) -> Tensor:
        """Sets every element to a number, or to that of a tensor without dimensions."""

    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """The dimensions from `start_dim` to `end_dim` as one."""

    @overload
    def flip(self, *dims: Size) -> Tensor:
        """Dimensions in reverse order of elements."""

    @overload
    def flip(self, *, dims: Size) -> Tensor:
        """Dimensions in reverse order of elements."""

    def float(self) -> Tensor:
        """The same values as float32."""

    def floor(self) -> Tensor:
        """The next integer below."""

    def floor_(self) -> Tensor:
        """`floor` in place."""

    def floor_divide(self, other: Operand) -> Tensor:
        """The quotient rounded down. Integers by zero give 0."""

    def floor_divide_(self, other: Operand) -> Tensor:
        """In-place form of `try_floor_divide` without its underscore: changes this tensor."""

    def gather(self, dim: builtins.int, index: Tensor) -> Tensor:
        """Picks along a dimension: `out[i][j] = self[index[i][j]][j]` for dimension 0."""

    def ge(self, other: Operand) -> Tensor:
        """self >= other"""

    def gelu(self, approximate: str = 'none') -> Tensor:
        """x * Phi(x) with the exact Phi, or by the hyperbolic tangent with `approximate='tanh'`."""

    def gpu(self, index: builtins.int = 0) -> Tensor:
        """The same values on a GPU."""

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` collected, or `None`."""

    @grad.setter
    def grad(self, value: Any) -> None: ...

    def greater(self, other: Operand) -> Tensor:
        """self > other"""

    def greater_equal(self, other: Operand) -> Tensor:
        """self >= other"""

    def gt(self, other: Operand) -> Tensor:
        """self > other"""

    def half(self) -> Tensor:
        """The same values as float16."""

    def hardsigmoid(self) -> Tensor:
        """(x + 3) / 6 held between 0 and 1."""

    def hardsigmoid_(self) -> Tensor:
        """`hardsigmoid` in place."""

    def hardswish(self) -> Tensor:
        """x * hardsigmoid(x)"""

    def hardswish_(self) -> Tensor:
        """`hardswish` in place."""

    def hardtanh(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
        """x held between two bounds, where its gradient is zero."""

    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number | None = None) -> Tensor:
        """A copy with `alpha` times the slices of `source` added along a dimension where a vector of positions says; repeated
        positions add up.
        """

    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number | None = None) -> Tensor:
        """`index_add` in place."""

    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """Whole slices of a dimension, picked by a vector of positions."""

    def int(self) -> Tensor:
        """The same values as int32."""

    def is_contiguous(self) -> builtins.bool:
        """Whether its elements lie in order. They always do: views are values of their own."""

    def is_floating_point(self) -> builtins.bool:
        """Whether its elements are floats."""

    @property
    def is_gpu(self) -> builtins.bool:
        """Whether it lives on a GPU."""

    @property
    def is_leaf(self) -> builtins.bool:
        """Whether it was not computed from anything that requires gradients."""

    @property
    def is_realized(self) -> builtins.bool:
        """Whether the value was computed already."""

    def is_same(self, other: Tensor) -> builtins.bool:
        """Whether both names are of one tensor: what changes one in place changes the other."""

    def isclose(self, other: Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08) -> Tensor:
        """Where |self - other| <= atol + rtol * |other|."""

    def isfinite(self) -> Tensor:
        """True where neither NaN nor infinite."""

    def isinf(self) -> Tensor:
        """True where infinite."""

    def isnan(self) -> Tensor:
        """True where NaN."""

    def item(self) -> builtins.float | builtins.int | builtins.bool:
        """The value of a tensor of one element, as a Python number."""

    @property
    def itemsize(self) -> builtins.int:
        """Bytes of one element."""

    def le(self, other: Operand) -> Tensor:
        """self <= other"""

    def leaky_relu(self, negative_slope: builtins.float = 0.01) -> Tensor:
        """x above zero, negative_slope * x below."""

    def less(self, other: Operand) -> Tensor:
        """self < other"""

    def less_equal(self, other: Operand) -> Tensor:
        """self <= other"""

    def log(self) -> Tensor:
        """Natural logarithm."""

    def log1p(self) -> Tensor:
        """log(1 + x), exact near zero."""

    def log1p_(self) -> Tensor:
        """`log1p` in place."""

    def log2(self) -> Tensor:
        """Logarithm to base 2."""

    def log2_(self) -> Tensor:
        """`log2` in place."""

    def log_(self) -> Tensor:
        """`log` in place."""

    def log_softmax(self, dim: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """The logarithm of `softmax`, exact also where that is nearly zero."""

    def logical_and(self, other: Operand) -> Tensor:
        """Both true (not zero)."""

    def logical_and_(self, other: Operand) -> Tensor:
        """In-place form of `try_logical_and` without its underscore: changes this tensor."""

    def logical_not(self) -> Tensor:
        """True where zero or false."""

    def logical_not_(self) -> Tensor:
        """`logical_not` in place."""

    def logical_or(self, other: Operand) -> Tensor:
        """At least one true (not zero)."""

    def logical_or_(self, other: Operand) -> Tensor:
        """In-place form of `try_logical_or` without its underscore: changes this tensor."""

    def logical_xor(self, other: Operand) -> Tensor:
        """Exactly one true (not zero)."""

    def logical_xor_(self, other: Operand) -> Tensor:
        """In-place form of `try_logical_xor` without its underscore: changes this tensor."""

    def logsigmoid(self) -> Tensor:
        """log(sigmoid(x)), exact where that is nearly 0 or 1."""

    def logsigmoid_(self) -> Tensor:
        """`logsigmoid` in place."""

    def logsumexp(self, dim: Size, keepdim: builtins.bool = False) -> Tensor:
        """The logarithm of the sum of exponentials over dimensions, without overflow."""

    def long(self) -> Tensor:
        """The same values as int64."""

    def lt(self, other: Operand) -> Tensor:
        """self < other"""

    @property
    def mT(self) -> Tensor:
        """The last two dimensions exchanged."""

    def masked_fill(self, mask: Tensor, value: Operand) -> Tensor:
        """`value`, a number or a tensor without dimensions, where the mask (bool, broadcast) is true."""

    def masked_fill_(self, mask: Tensor, value: Operand) -> Tensor:
        """`masked_fill` in place."""

    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where a mask, broadcast with the tensor, is true, as a vector."""

    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product: vectors count as a row on the left and a column on the right, other dimensions broadcast."""

    @overload
    def max(self) -> Tensor:
        """The largest element of all; or, along a dimension, the largest elements and their positions (int64), as a
        tuple `(values, indices)`; or the larger of two tensors, elementwise. NaN wins.
        """

    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.max:
        """The largest element of all; or, along a dimension, the largest elements and their positions (int64), as a
        tuple `(values, indices)`; or the larger of two tensors, elementwise. NaN wins.
        """

    @overload
    def max(self, dim: Tensor) -> Tensor:
        """The largest element of all; or, along a dimension, the largest elements and their positions (int64), as a
        tuple `(values, indices)`; or the larger of two tensors, elementwise. NaN wins.
        """

    def maximum(self, other: Operand) -> Tensor:
        """The larger one, elementwise; NaN wins."""

    def mean(self, dim: Size | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The mean of all elements, or over dimensions; of none it is NaN."""

    @overload
    def median(self) -> Tensor:
        """The middle element of all, the lower one of two; or, along a dimension, `(values, indices)`. NaN wins."""

    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.median:
        """The middle element of all, the lower one of two; or, along a dimension, `(values, indices)`. NaN wins."""

    @overload
    def min(self) -> Tensor:
        """The smallest element of all; or, along a dimension, the smallest elements and their positions (int64), as a
        tuple `(values, indices)`; or the smaller of two tensors, elementwise. NaN wins.
        """

    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.min:
        """The smallest element of all; or, along a dimension, the smallest elements and their positions (int64), as a
        tuple `(values, indices)`; or the smaller of two tensors, elementwise. NaN wins.
        """

    @overload
    def min(self, dim: Tensor) -> Tensor:
        """The smallest element of all; or, along a dimension, the smallest elements and their positions (int64), as a
        tuple `(values, indices)`; or the smaller of two tensors, elementwise. NaN wins.
        """

    def minimum(self, other: Operand) -> Tensor:
        """The smaller one, elementwise; NaN wins."""

    def mish(self) -> Tensor:
        """x * tanh(log(1 + exp(x)))"""

    def mish_(self) -> Tensor:
        """`mish` in place."""

    def mm(self, mat2: Tensor) -> Tensor:
        """The matrix product of two matrices."""

    def movedim(self, source: Size, destination: Size) -> Tensor:
        """A dimension, or several, at other places."""

    def mul(self, other: Operand) -> Tensor:
        """self * other"""

    def mul_(self, other: Operand) -> Tensor:
        """In-place form of `try_mul` without its underscore: changes this tensor."""

    def multiply(self, other: Operand) -> Tensor:
        """self * other"""

    def multiply_(self, other: Operand) -> Tensor:
        """In-place form of `try_mul` without its underscore: changes this tensor."""

    def mv(self, vec: Tensor) -> Tensor:
        """The product of a matrix and a vector."""

    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """`length` elements of a dimension from `start`."""

    @property
    def nbytes(self) -> builtins.int:
        """Bytes of all elements."""

    @property
    def ndim(self) -> builtins.int:
        """The number of dimensions."""

    def ne(self, other: Operand) -> Tensor:
        """self != other"""

    def neg(self) -> Tensor:
        """-x"""

    def neg_(self) -> Tensor:
        """`neg` in place."""

    def negative(self) -> Tensor:
        """-x"""

    def nelement(self) -> builtins.int:
        """The number of elements."""

    def nonzero(self, *, as_tuple: builtins.bool = False) -> Any:
        """The positions of all elements that are not zero: a row each, or, with `as_tuple=True`, a vector for each
        dimension.
        """

    def norm(self, p: builtins.float | str | None = None, dim: Size | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The p-norm of all elements, or over dimensions: `p` may be 0, infinity or its negative too."""

    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0) -> Tensor:
        """Fills the tensor with normal random numbers."""

    def normalize(self, p: builtins.float = 2.0, dim: builtins.int = 1, eps: builtins.float = 1e-12) -> Tensor:
        """Divided by its p-norm along a dimension, or by `eps` where the norm is smaller."""

    def not_equal(self, other: Operand) -> Tensor:
        """self != other"""

    def numel(self) -> builtins.int:
        """The number of elements."""

    def numpy(self, *, force: builtins.bool = False) -> np.ndarray[Any, Any]:
        """The values as a NumPy array that shares this tensor's memory: writing to the array changes the tensor, while
        an op in place gives the tensor other memory and leaves the array as it is.

        A tensor on a GPU must be moved with `cpu()` first and one that requires gradients be detached; `force=True`
        does both.
        """

    def one_hot(self, num_classes: builtins.int) -> Tensor:
        """A row of `num_classes` for every index, 1 at the index and 0 elsewhere."""

    def outer(self, vec2: Tensor) -> Tensor:
        """Every element of one vector by every element of another."""

    def pad(self, pad: Sequence[builtins.int], mode: str = 'constant', value: Number | None = None) -> Tensor:
        """Padding as PyTorch has it: (before, after) of the last dimension, then of the one before, ... Negative numbers
        cut.
        """

    @overload
    def permute(self, *dims: Size) -> Tensor:
        """The dimensions in another order."""

    @overload
    def permute(self, *, dims: Size) -> Tensor:
        """The dimensions in another order."""

    def pow(self, exponent: Operand) -> Tensor:
        """self to the power of `exponent`."""

    def pow_(self, other: Operand) -> Tensor:
        """In-place form of `try_pow` without its underscore: changes this tensor."""

    def prelu(self, weight: Tensor) -> Tensor:
        """x above zero, weight * x below, with one weight or one for every channel (dimension 1)."""

    def prod(self, dim: Size | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The product of all elements, or over dimensions. Integers are multiplied as int64."""

    def ravel(self) -> Tensor:
        """All elements as a vector."""

    def realize(self) -> Tensor:
        """Computes the value now, if it is not there yet, and returns the tensor."""

    def reciprocal(self) -> Tensor:
        """1 / x"""

    def reciprocal_(self) -> Tensor:
        """`reciprocal` in place."""

    def relu(self) -> Tensor:
        """max(x, 0); NaN stays NaN."""

    def relu6(self) -> Tensor:
        """x held between 0 and 6."""

    def relu6_(self) -> Tensor:
        """`relu6` in place."""

    def relu_(self) -> Tensor:
        """`relu` in place."""

    def remainder(self, other: Operand) -> Tensor:
        """self - other * floor(self / other): has the sign of `other`. Integers by zero give 0."""

    def remainder_(self, other: Operand) -> Tensor:
        """In-place form of `try_remainder` without its underscore: changes this tensor."""

    @overload
    def repeat(self, *repeats: Size) -> Tensor:
        """The whole tensor repeated along every dimension; more numbers than dimensions add some in front."""

    @overload
    def repeat(self, *, repeats: Size) -> Tensor:
        """The whole tensor repeated along every dimension; more numbers than dimensions add some in front."""

    def repeat_interleave(self, repeats: builtins.int, dim: builtins.int | None = None) -> Tensor:
        """Every element repeated in place, along a dimension or of the flattened tensor."""

    @property
    def requires_grad(self) -> builtins.bool:
        """Whether gradients flow into or through it. Assigning makes a leaf collect gradients, or stop."""

    @requires_grad.setter
    def requires_grad(self, value: builtins.bool) -> None: ...

    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """Makes a leaf collect gradients, or stop, and returns it."""

    @overload
    def reshape(self, *shape: Size) -> Tensor:
        """The same elements in order under another shape; one size may be -1 and follows from the others."""

    @overload
    def reshape(self, *, shape: Size) -> Tensor:
        """The same elements in order under another shape; one size may be -1 and follows from the others."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """`reshape` to another tensor's shape."""

    def roll(self, shifts: Size, dims: Size | None = None) -> Tensor:
        """Elements moved along dimensions; what leaves at one end comes back at the other. Without `dims` the flattened
        tensor is moved.
        """

    def round(self) -> Tensor:
        """The nearest integer, halves to even."""

    def round_(self) -> Tensor:
        """`round` in place."""

    def rsqrt(self) -> Tensor:
        """1 / square root of x"""

    def rsqrt_(self) -> Tensor:
        """`rsqrt` in place."""

    def rsub(self, other: Operand) -> Tensor:
        """other - self"""

    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """A copy with the elements of `src` added at `index` along a dimension; repeated indices add up."""

    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """`scatter_add` in place."""

    def select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """One element of a dimension, which goes."""

    @property
    def shape(self) -> tuple[builtins.int, ...]:
        """The sizes of all dimensions, as a tuple."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))"""

    def sigmoid_(self) -> Tensor:
        """`sigmoid` in place."""

    def sign(self) -> Tensor:
        """-1, 0 or 1; of NaN it is 0."""

    def sign_(self) -> Tensor:
        """`sign` in place."""

    def silu(self) -> Tensor:
        """x * sigmoid(x), also called swish."""

    def silu_(self) -> Tensor:
        """`silu` in place."""

    def sin(self) -> Tensor:
        """Sine of radians."""

    def sin_(self) -> Tensor:
        """`sin` in place."""

    def size(self, dim: builtins.int | None = None) -> Any:
        """The sizes of all dimensions, or of one of them."""

    def softmax(self, dim: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """Exponentials along a dimension, divided by their sum."""

    def softplus(self, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above `threshold`."""

    def softsign(self) -> Tensor:
        """x / (1 + |x|)"""

    def softsign_(self) -> Tensor:
        """`softsign` in place."""

    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> return_types.sort:
        """A dimension in order, with the positions (int64) its elements had: `(values, indices)`. Equal elements keep
        their order; NaN counts as the largest.
        """

    def split(self, split_size_or_sections: Size, dim: builtins.int = 0) -> list[Tensor]:
        """Parts along a dimension: of one size, the last may be smaller, or of the sizes in a list."""

    def sqrt(self) -> Tensor:
        """Square root; NaN below zero."""

    def sqrt_(self) -> Tensor:
        """`sqrt` in place."""

    def square(self) -> Tensor:
        """x * x"""

    def square_(self) -> Tensor:
        """`square` in place."""

    def squeeze(self, dim: Size | None = None) -> Tensor:
        """Without dimensions of size 1: all of them, one or several."""

    def std(self, dim: Size | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
        """The standard deviation of all elements, or over dimensions. Where it is 0 its gradient is 0."""

    def sub(self, other: Operand, *, alpha: Number | None = None) -> Tensor:
        """self - alpha * other"""

    def sub_(self, other: Operand, *, alpha: Number | None = None) -> Tensor:
        """Subtracts `alpha` times a tensor or number, in place."""

    def subtract(self, other: Operand, *, alpha: Number | None = None) -> Tensor:
        """self - alpha * other"""

    def sum(self, dim: Size | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum of all elements, or over dimensions. Integers are summed as int64."""

    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    def t(self) -> Tensor:
        """The two dimensions of a matrix exchanged."""

    def tan(self) -> Tensor:
        """Tangent of radians."""

    def tan_(self) -> Tensor:
        """`tan` in place."""

    def tanh(self) -> Tensor:
        """Hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """`tanh` in place."""

    @overload
    def tile(self, *dims: Size) -> Tensor:
        """`repeat` that takes fewer numbers than dimensions, for the last ones."""

    @overload
    def tile(self, *, dims: Size) -> Tensor:
        """`repeat` that takes fewer numbers than dimensions, for the last ones."""

    def to(self, *args: Any, device: DeviceLike | None = None, dtype: DTypeLike | None = None, non_blocking: builtins.bool = False, copy: builtins.bool = False) -> Tensor:
        """The same values as another type, on another device, or both: `x.to('gpu')`, `x.to(volta.float16)`, `x.to(other)`."""

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; of a tensor without dimensions, the number."""

    def topk(self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True) -> return_types.topk:
        """The `k` largest (or smallest) elements of a dimension in order, with their positions (int64)."""

    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """Zeros above a diagonal of the last two dimensions."""

    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """Zeros below a diagonal of the last two dimensions."""

    def true_divide(self, other: Operand) -> Tensor:
        """self / other; of integers too, in floats."""

    def true_divide_(self, other: Operand) -> Tensor:
        """In-place form of `try_div` without its underscore: changes this tensor."""

    def trunc(self) -> Tensor:
        """The integer part."""

    def trunc_(self) -> Tensor:
        """`trunc` in place."""

    def type(self, dtype: DTypeLike) -> Tensor:
        """The same values as another type."""

    def type_as(self, other: Tensor) -> Tensor:
        """The same values in the type of another tensor."""

    def unbind(self, dim: builtins.int = 0) -> list[Tensor]:
        """The slices of a dimension, which goes."""

    def unflatten(self, dim: builtins.int, sizes: Size) -> Tensor:
        """One dimension as several; one size may be -1."""

    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Sliding windows of `size` over a dimension, every `step`, as a new last dimension."""

    def uniform_(self, low: builtins.float = 0.0, high: builtins.float = 1.0) -> Tensor:
        """Fills the tensor with uniform random numbers from `low` up to `high`."""

    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """With a new dimension of size 1."""

    def var(self, dim: Size | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
        """The variance of all elements, or over dimensions, divided by their number less `correction` (1 by default)."""

    @overload
    def view(self, *size: Size) -> Tensor:
        """`reshape`: views are values of their own, so every shape fits."""

    @overload
    def view(self, *, size: Size) -> Tensor:
        """`reshape`: views are values of their own, so every shape fits."""

    def view_as(self, other: Tensor) -> Tensor:
        """`reshape` to another tensor's shape."""

    def where(self, condition: Operand, other: Operand) -> Tensor:
        """The elements of this tensor where `condition` holds, of `other` elsewhere."""

    def zero_(self) -> Tensor:
        """Sets every element to 0."""

    def __array__(self, dtype: DTypeLike | None = None, copy: builtins.bool | None = None) -> np.ndarray[Any, Any]:
        """For `np.asarray(tensor)`."""

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[builtins.int, builtins.int] | None = None, dl_device: tuple[builtins.int, builtins.int] | None = None, copy: builtins.bool | None = None) -> Any:
        """A DLPack capsule that shares this tensor's memory, for `np.from_dlpack(tensor)` and the like."""

    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]:
        """DLPack's number for the device: its kind and index."""


def arange(start: Number, end: Number | None = None, step: Number | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Numbers from a start (0 by default) up to, not including, an end, `step` apart: `arange(end)`,
    `arange(start, end)`, `arange(start, end, step)`. Of integers they are int64, otherwise float32.
    """


def as_tensor(data: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """`data` as a tensor: itself if it is one, sharing memory with an array on the CPU, otherwise a copy."""


def bernoulli(input: Tensor) -> Tensor:
    """1 with the probability that each element gives, 0 elsewhere, in its type."""

bfloat16: dtype
bool: dtype

def broadcast_shapes(*shapes: Size) -> tuple[builtins.int, ...]:
    """The shape that shapes broadcast to."""


def broadcast_tensors(*tensors: Tensor) -> list[Tensor]:
    """Tensors expanded to their common shape."""


def cat(tensors: Sequence[Tensor], dim: builtins.int = 0) -> Tensor:
    """Tensors one behind the other along a dimension."""


class device:
    """A place for tensors: `volta.device('cpu')`, `volta.device('gpu')`, `volta.device('gpu', 1)`. In a `with` statement
    it is the place where tensors are created unless said otherwise.
    """

    def __init__(self, type: DeviceLike, index: builtins.int | None = None) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *exception: Any) -> None: ...

    @property
    def index(self) -> builtins.int | None:
        """Which GPU; `None` for the CPU."""

    @property
    def type(self) -> str:
        """`'cpu'` or `'gpu'`."""


def devices() -> list[tuple[device, str]]:
    """The devices that tensors can live on, with the name of each: `[(device(type='cpu'), 'cpu'), ...]`."""

double: dtype

class dtype:
    """A type of elements: `volta.float32`, `volta.int64`, ..."""


    @property
    def is_floating_point(self) -> builtins.bool:
        """Whether it is a float, through which gradients can flow."""

    @property
    def itemsize(self) -> builtins.int:
        """Bytes of one element."""


def einsum(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Sums of products by Einstein's rule: `einsum('bij,bjk->bik', a, b)`."""


@overload
def empty(*size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """A tensor whose values do not matter; they are zeros."""

@overload
def empty(*, size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """A tensor whose values do not matter; they are zeros."""


def empty_like(input: Tensor, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """A tensor of another's shape and type whose values do not matter; they are zeros."""


def eye(n: builtins.int, m: builtins.int | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""

float: dtype
float16: dtype
float32: dtype
float64: dtype

def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of any object on the CPU that speaks DLPack, such as arrays of NumPy and JAX. One
    whose elements do not lie in order is copied.
    """


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on the CPU that shares the memory of a NumPy array: what is written to the array is seen by the tensor.

    An array that is not contiguous, misaligned or of the other byte order is copied. Ops in place on the tensor do not
    write to the array. The `numpy()` of a tensor that shares a read-only array is read-only too.
    """


def full(size: Size, fill_value: Number, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """One value everywhere."""


def full_like(input: Tensor, fill_value: Number, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """One value in a tensor's shape and type."""


def get_default_device() -> device:
    """Where tensors are created unless said otherwise."""


def get_rng_state() -> tuple[builtins.int, builtins.int]:
    """The state of the random numbers, to go on from with `set_rng_state`."""


def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | Sequence[Tensor] | None = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool = False, allow_unused: builtins.bool = False) -> tuple[Tensor, ...]:
    """The gradients of the sum of `outputs` with respect to `inputs`, as a tuple; nothing is added to `grad`. An input
    that no output depends on is an error, or gives `None` with `allow_unused=True`.
    """

half: dtype
int: dtype
int32: dtype
int64: dtype

def is_available() -> builtins.bool:
    """Whether there is a GPU that tensors can be moved to. Software adapters count where `VOLTA_ADAPTER` names them."""


def is_grad_enabled() -> builtins.bool:
    """Whether what this thread computes is recorded for gradients."""


def linspace(start: Number, end: Number, steps: builtins.int, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """`steps` numbers evenly spaced from `start` to `end`, both included."""

long: dtype

def manual_seed(seed: builtins.int) -> None:
    """Starts the random numbers anew: the same seed gives the same numbers, bit for bit, on every device."""


@overload
def ones(*size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Ones of a shape."""

@overload
def ones(*, size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Ones of a shape."""


def ones_like(input: Tensor, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Ones of a tensor's shape and type."""


@overload
def rand(*size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Uniform random numbers in [0, 1)."""

@overload
def rand(*, size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Uniform random numbers in [0, 1)."""


def rand_like(input: Tensor, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Uniform random numbers in [0, 1) of a tensor's shape and type."""


def randint(low: builtins.int, high: builtins.int | Sequence[builtins.int] | None = None, size: Size | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Uniform random integers from `low` (0 by default) up to, not including, `high`: `randint(high, size)` or
    `randint(low, high, size)`.
    """


def randint_like(input: Tensor, low: builtins.int, high: builtins.int, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Uniform random integers from `low` up to, not including, `high`, of a tensor's shape and type."""


@overload
def randn(*size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Normal random numbers with mean 0 and deviation 1."""

@overload
def randn(*, size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Normal random numbers with mean 0 and deviation 1."""


def randn_like(input: Tensor, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Normal random numbers of a tensor's shape and type."""


def randperm(n: builtins.int, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The numbers from 0 up to, not including, `n` in random order."""


def realize(*tensors: Tensor) -> None:
    """A tensor computed now, or several in one plan, with everything else this thread has pending."""


def set_default_device(device: DeviceLike) -> None:
    """Creates tensors on this device from now on, in all threads."""


def set_rng_state(state: tuple[builtins.int, builtins.int]) -> None:
    """Goes on with the random numbers from a state of `get_rng_state`."""


def stack(tensors: Sequence[Tensor], dim: builtins.int = 0) -> Tensor:
    """Tensors of one shape along a new dimension."""


def synchronize(device: DeviceLike | None = None) -> None:
    """Computes what is pending, and waits until all devices that were used, or the one that is named, have done everything: for
    measuring, as nothing else needs it. An index that was out of bounds, or a division of integers by zero, is the error of
    whoever waits for the device next.
    """


def tensor(data: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """A tensor with a copy of `data`: a number, nested lists of numbers, a NumPy array or a tensor.

    Python's floats become float32, integers int64, truth values bool; arrays keep their type.
    """


def tril_mask(rows: builtins.int, columns: builtins.int, diagonal: builtins.int = 0, *, device: DeviceLike | None = None) -> Tensor:
    """A bool matrix: true on and below a diagonal."""


def triu_mask(rows: builtins.int, columns: builtins.int, diagonal: builtins.int = 0, *, device: DeviceLike | None = None) -> Tensor:
    """A bool matrix: true on and above a diagonal."""

uint32: dtype
uint8: dtype

def where(condition: Operand, input: Operand | None = None, other: Operand | None = None) -> Any:
    """The elements of `input` where `condition` holds, of `other` elsewhere; with the condition alone, the positions where
    it holds, as a tuple.
    """


@overload
def zeros(*size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Zeros of a shape."""

@overload
def zeros(*, size: Size, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Zeros of a shape."""


def zeros_like(input: Tensor, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """Zeros of a tensor's shape and type."""
