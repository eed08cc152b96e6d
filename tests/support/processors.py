"""Features of the processor that runs the tests, on which expectations depend."""

from tensorplan.runtime.backends.onednn import backend as onednn

_AVX512 = 0x20  # a bit of oneDNN's `dnnl_cpu_isa_t`


def multiplies_packed() -> bool:
    """Whether oneDNN multiplies matrices in packed layouts without workspaces, as its
    AVX-512 kernels do and its AVX2 kernels do not."""
    from tensorplan.runtime.backends.onednn.library import library

    return onednn.is_available() and bool(
        library().get("get_effective_cpu_isa") & _AVX512
    )
