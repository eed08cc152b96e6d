"""Training steps of the networks, in PyTorch.

A step is one function with the gradients that PyTorch's autograd traces. It overwrites
the parameters and the state of the optimizer.
"""

# pyright: reportUnknownMemberType=false
# PyTorch may be missing, and its modules have no types then.

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from peers.networks import F, Module, Network, Tensor, nn, torch

make_fx: Any = import_module("torch.fx.experimental.proxy_tensor").make_fx


class Loss(nn.Module):
    """The mean cross-entropy of a network's scores."""

    def __init__(self, network: Module):
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        scores = self.network(x)
        return F.cross_entropy(scores.flatten(0, -2), labels.flatten())


class Gradients(nn.Module):
    """The loss and its gradients with respect to the parameters."""

    def __init__(self, loss: Module):
        super().__init__()
        self.loss = loss

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        loss = self.loss(x, labels)
        return loss.detach(), torch.autograd.grad(loss, list(self.parameters()))


def losses(network: Network) -> tuple[Module, tuple[Tensor, Tensor]]:
    """A module that returns the loss of `network`, and its inputs: input and labels."""
    assert network.labels is not None
    return Loss(network.make()), (network.input(), network.labels())


def layers_apart() -> Any:
    """A context without oneDNN, whose opaque LSTM can't be traced with gradients."""
    return torch.backends.mkldnn.flags(enabled=False)


def training_graph(network: Network) -> tuple[Module, list[Tensor]]:
    """A training step as one graph with gradients, and its arguments: the parameters,
    optimizer state and buffers, which it overwrites; the input; the labels."""
    loss, inputs = losses(network)
    module = Gradients(loss)
    names, parameters = zip(*module.named_parameters(), strict=True)
    count = len(names)
    kept = {"sgd": 0, "momentum": count, "adam": 2 * count}[network.update]
    state = [torch.zeros_like(p) for p in (*parameters, *parameters)[:kept]]
    if network.update == "adam":
        state.append(torch.zeros(()))  # the number of steps
    buffers = dict(module.named_buffers())

    def step(*arguments: Tensor) -> Sequence[Tensor]:
        weights, others = arguments[:count], arguments[count : -2 - len(buffers)]
        *stats, x, labels = arguments[-2 - len(buffers) :]
        named = dict(zip((*names, *buffers), (*weights, *stats), strict=True))
        loss, gradients = torch.func.functional_call(module, named, (x, labels))
        with torch.no_grad():
            UPDATES[network.update](weights, gradients, others)
        return [loss]

    arguments = [*parameters, *state, *buffers.values(), *inputs]
    with layers_apart():
        graph = make_fx(step, tracing_mode="fake")(*arguments)
    return graph, [argument.detach() for argument in arguments]


def _sgd(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], _: Sequence[Tensor]
) -> None:
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.sub_(0.01 * gradient)


def _momentum(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], means: Sequence[Tensor]
) -> None:
    for weight, gradient, mean in zip(weights, gradients, means, strict=True):
        mean.mul_(0.9).add_(gradient)
        weight.sub_(0.01 * mean)


def _adam(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], state: Sequence[Tensor]
) -> None:
    count = len(weights)
    steps = state[-1]
    steps.add_(1)
    scale1, scale2 = 1 - 0.9**steps, 1 - 0.999**steps
    for weight, gradient, mean, square in zip(
        weights, gradients, state[:count], state[count:-1], strict=True
    ):
        mean.mul_(0.9).add_(0.1 * gradient)
        square.mul_(0.999).add_(0.001 * gradient * gradient)
        weight.sub_(1e-3 * (mean / scale1) / ((square / scale2).sqrt() + 1e-8))


UPDATES = {"sgd": _sgd, "momentum": _momentum, "adam": _adam}


def exported(network: Network) -> Any:
    """The network, or its training step, as an `ExportedProgram`."""
    if network.update:
        graph, arguments = training_graph(network)
    else:
        graph, arguments = network.make().eval(), [network.input()]
    return torch.export.export(graph, tuple(arguments))
