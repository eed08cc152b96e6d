"""Recurrent networks as scans over a sequence."""

from .base import Array, Arrays, Model, Random, adam, inference, jax, jnp, np


def _lstm_parameters(random: Random, inputs: int, width: int) -> Arrays:
    return [
        random.weights(inputs, 4 * width),
        random.weights(width, 4 * width),
        np.zeros(4 * width, np.float32),
        random.weights(width, 1),
    ]


def _lstm(parameters: Arrays, x: Array) -> Array:
    """Maps a sequence (time, batch, inputs) to one number per batch element."""
    by_input, by_state, bias, readout = parameters
    width = by_state.shape[0]

    def cell(carry: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], None]:
        state, memory = carry
        gates = x @ by_input + state @ by_state + bias
        i, f, g, o = (gates[:, n * width : (n + 1) * width] for n in range(4))
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        state = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (state, memory), None

    zeros = jnp.zeros((x.shape[1], width), jnp.float32)
    (state, _), _ = jax.lax.scan(cell, (zeros, zeros), x)
    return state @ readout


def lstm(
    length: int = 64, batch: int = 16, inputs: int = 64, width: int = 128
) -> Model:
    """An LSTM, forward."""
    random = Random()
    x = random.normal(length, batch, inputs)
    return inference(_lstm, _lstm_parameters(random, inputs, width), x)


def lstm_step(
    length: int = 32, batch: int = 16, inputs: int = 32, width: int = 64
) -> Model:
    """One step of Adam on an LSTM."""
    random = Random()

    def loss(parameters: Arrays, x: Array, y: Array) -> Array:
        return ((_lstm(parameters, x) - y) ** 2).mean()

    x, y = random.normal(length, batch, inputs), random.normal(batch, 1)
    return adam(loss, _lstm_parameters(random, inputs, width), x, y)


def gru(length: int = 50, batch: int = 1, width: int = 64) -> Model:
    """A GRU on one sequence, forward: products with vectors."""
    random = Random()
    parameters = [random.weights(width, 3 * width), random.weights(width, 3 * width)]

    def forward(parameters: Arrays, x: Array) -> Array:
        by_input, by_state = parameters

        def cell(state: Array, x: Array) -> tuple[Array, Array]:
            a, b = x @ by_input, state @ by_state
            reset = jax.nn.sigmoid(a[:, :width] + b[:, :width])
            keep = jax.nn.sigmoid(a[:, width:-width] + b[:, width:-width])
            new = jnp.tanh(a[:, -width:] + reset * b[:, -width:])
            state = (1 - keep) * new + keep * state
            return state, state

        zeros = jnp.zeros((x.shape[1], width), jnp.float32)
        return jax.lax.scan(cell, zeros, x)[1]

    return inference(forward, parameters, random.normal(length, batch, width))


def recurrence(length: int = 1000, width: int = 256) -> Model:
    """A linear recurrence with gates, elementwise, as in state space models."""
    random = Random()

    def forward(x: Array, gates: Array) -> Array:
        def cell(state: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            x, gate = now
            gate = jax.nn.sigmoid(gate)
            state = gate * state + (1 - gate) * x
            return state, state

        return jax.lax.scan(cell, jnp.zeros(width, jnp.float32), (x, gates))[1]

    return Model(forward, [random.normal(length, width), random.normal(length, width)])
