"""What the processor that runs the tests has, for expectations that depend on it."""

from tensorplan.runtime.backends.onednn import backend as onednn

_AVX512 = 0x20  # a bit of oneDNN's `dnnl_cpu_isa_t`


def multiplies_packed() -> bool:
    """Whether oneDNN multiplies matrices in layouts of its own and needs no workspace:
    its kernels for AVX2 do neither."""
    from tensorplan.runtime.backends.onednn.library import library

    return onednn.is_available() and bool(
        library().get("get_effective_cpu_isa") & _AVX512
    )
