"""Short forms of kernel names, and the command that answers names."""

# ruff: noqa: E501 - names stand as they are recorded

from __future__ import annotations

import io
import json

import pytest

from rooflight.cli.kernels import answers
from rooflight.cli.lines import bounded
from rooflight.cli.main import main
from rooflight.kernels import classify

# --- short names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)"
            ),
            "vectorized_elementwise_kernel‹4, CUDAFunctor_add‹float››",
        ),
        # What a loop or a reduction does stands deep inside: it is brought forward, with the element type.
        (
            (
                "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<"
                "c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, "
                "at::native::BinaryFunctor<float> const&)::{lambda(int)#1}>(int, P)"
            ),
            "elementwise_kernel‹128, 2, gpu_kernel_impl_nocast‹BinaryFunctor‹BFloat16, MulFunctor‹float››››",
        ),
        (
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned int, "
                "float, 4> >(at::native::ReduceOp<float>)"
            ),
            "reduce_kernel‹512, 1, ReduceOp‹float, MeanOps‹float›››",
        ),
        (
            (
                "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<"
                "at::native::OpaqueType<2> >(P)::{lambda(char*, char const*, long)#1}>(P)::{lambda(int)#1}>(long, P)"
            ),
            "index_elementwise_kernel‹128, 4, gpu_index_kernel‹index_kernel_impl‹OpaqueType‹2››››",
        ),
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}"
                "::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)"
            ),
            "vectorized_elementwise_kernel‹4, tanh_kernel_cuda(BFloat16)›",
        ),
        (
            (
                "_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11threadblock22ImplicitGemm"
                "MultistageEEEEEvNT_6ParamsE"
            ),
            "cutlass_cudnn_train::Kernel‹ImplicitGemmConvolution, …›",
        ),
        ("[CUDA memcpy Host-to-Device]", "[CUDA memcpy Host-to-Device]"),
        (
            (
                "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 3, false, false>"
                "(c10::BFloat16*, c10::BFloat16 const*, int, int, int, bool const*, int, bool)"
            ),
            "softmax_warp_forward‹BFloat16, BFloat16, float, …›",
        ),
        (
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1",
            "Cijk_Alik_Bljk_BBS_BH MT256x192x64 MI16x16x1",
        ),
        ("ampere_sgemm_128x32_nn", "ampere_sgemm_128x32_nn"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        (
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
            "aiter::add_rmsnorm_quant_kernel",
        ),
        (
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEEvv",
            "ck_tile::kentry‹Rmsnorm2dFwd, …›",
        ),
    ],
)
def test_short_name(name: str, short: str) -> None:
    assert classify(name).short_name == short


def test_command_answers_each_line() -> None:
    lines = list(answers(["ampere_sgemm_128x32_nn\n", "\n", "Memset (Device)\r\n"]))
    told = [json.loads(line) for line in lines]
    assert [t["name"] for t in told] == ["ampere_sgemm_128x32_nn", "", "Memset (Device)"]
    assert told[0] == {
        "name": "ampere_sgemm_128x32_nn",
        "short_name": "ampere_sgemm_128x32_nn",
        "family": "gemm",
        "dtype": "fp32",
        "compute_dtype": "fp32",
        "tensor_core": False,
        "collective": None,
    }


def test_a_line_without_end_fills_no_memory() -> None:
    """Of a line beyond the limit the beginning comes; the next line is a line of its own."""
    lines = list(bounded(io.BytesIO(b"abcdefghij\nk\n" + b"l" * 9), 4))
    assert lines == [b"abcd", b"k\n", b"llll"]


def test_names_come_in_as_bytes_and_carriage_returns_part_no_name(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\xffb\nc\rd\r\n")))
    assert main(["kernels"]) == 0
    told = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["a\\xffb", "c\rd"]
