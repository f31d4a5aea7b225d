"""The optimizers."""

from __future__ import annotations

from .optimizer import Optimizer, Parameters


class SGD(Optimizer):
    """Gradient descent, with momentum and Nesterov's step if asked for."""

    _rule = "SGD"
    _options = (
        ("lr", ("learning_rate",)),
        ("momentum", ("momentum",)),
        ("dampening", ("dampening",)),
        ("weight_decay", ("weight_decay",)),
        ("nesterov", ("nesterov",)),
    )

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        options = dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov)
        super().__init__(params, options)


_ADAM = (
    ("lr", ("learning_rate",)),
    ("betas", ("beta1", "beta2")),
    ("eps", ("epsilon",)),
    ("weight_decay", ("weight_decay",)),
    ("amsgrad", ("amsgrad",)),
)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015); weight decay is added to the gradient."""

    _rule = "Adam"
    _options = _ADAM

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad))


class AdamW(Optimizer):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    _rule = "AdamW"
    _options = _ADAM

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad))


class RMSprop(Optimizer):
    """RMSprop (Tieleman and Hinton, 2012), centered if asked for."""

    _rule = "RMSprop"
    _options = (
        ("lr", ("learning_rate",)),
        ("alpha", ("alpha",)),
        ("eps", ("epsilon",)),
        ("weight_decay", ("weight_decay",)),
        ("momentum", ("momentum",)),
        ("centered", ("centered",)),
    )

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        options = dict(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered)
        super().__init__(params, options)


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011)."""

    _rule = "Adagrad"
    _options = (
        ("lr", ("learning_rate",)),
        ("lr_decay", ("rate_decay",)),
        ("weight_decay", ("weight_decay",)),
        ("initial_accumulator_value", ("initial_sum",)),
        ("eps", ("epsilon",)),
    )

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        options = dict(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        super().__init__(params, {**options, "initial_accumulator_value": initial_accumulator_value})


class Lion(Optimizer):
    """Lion (Chen and others, 2023): every step has the same length, and only one moment is kept."""

    _rule = "Lion"
    _options = (("lr", ("learning_rate",)), ("betas", ("beta1", "beta2")), ("weight_decay", ("weight_decay",)))

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))


class Muon(Optimizer):
    """Muon (Jordan and others, 2024): momentum whose matrices are made orthogonal.

    For the matrices inside a network; its biases, norms and embeddings belong to an `AdamW` of their own.
    """

    _rule = "Muon"
    _options = (
        ("lr", ("learning_rate",)),
        ("momentum", ("momentum",)),
        ("weight_decay", ("weight_decay",)),
        ("nesterov", ("nesterov",)),
        ("ns_steps", ("iterations",)),
    )

    def __init__(
        self,
        params: Parameters,
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        options = dict(lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov, ns_steps=ns_steps)
        super().__init__(params, options)
