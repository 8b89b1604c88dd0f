# The configs that run on the host: every transposition, copy width, type, epilogue and split, on small tiles.
set(TN A_IS_K_CONTIGUOUS=true A_IS_M_CONTIGUOUS=false B_IS_K_CONTIGUOUS=true B_IS_N_CONTIGUOUS=false)   # A [M,K], B [N,K]
set(NN A_IS_K_CONTIGUOUS=true A_IS_M_CONTIGUOUS=false B_IS_K_CONTIGUOUS=false B_IS_N_CONTIGUOUS=true)   # A [M,K], B [K,N]
set(TT A_IS_K_CONTIGUOUS=false A_IS_M_CONTIGUOUS=true B_IS_K_CONTIGUOUS=true B_IS_N_CONTIGUOUS=false)   # A [K,M], B [N,K]
set(NT A_IS_K_CONTIGUOUS=false A_IS_M_CONTIGUOUS=true B_IS_K_CONTIGUOUS=false B_IS_N_CONTIGUOUS=true)   # A [K,M], B [K,N]
set(SMALL BLOCK_M=64 BLOCK_N=64 WARPS_M=2 WARPS_N=2)
set(BF16 ElementA=BFloat16 ElementB=BFloat16)
set(TF32 ElementA=float ElementB=float USES_TF32=true)

host_case(mma_default gemm_sm80_mma)
host_case(mma_tn_v16 gemm_sm80_mma ${SMALL} ${TN} STAGES=3)
host_case(mma_nn_v16_k64 gemm_sm80_mma ${SMALL} ${NN} BLOCK_K=64 STAGES=2)
host_case(mma_tt_v8_bf16 gemm_sm80_mma ${SMALL} ${TT} ${BF16} A_VEC_BYTES=8 B_VEC_BYTES=8 STAGES=5)
host_case(mma_nt_v4_split2 gemm_sm80_mma ${SMALL} ${NT} A_VEC_BYTES=4 B_VEC_BYTES=4 SPLIT_K=2 GROUP_M=1)
host_case(mma_tn_v2_direct gemm_sm80_mma ${SMALL} ${TN} A_VEC_BYTES=2 B_VEC_BYTES=2 STAGED_EPILOGUE=false)
host_case(mma_nt_v2_split8 gemm_sm80_mma ${SMALL} ${NT} A_VEC_BYTES=2 B_VEC_BYTES=2 SPLIT_K=8 STAGES=6)
host_case(mma_nn_v2_v16 gemm_sm80_mma ${SMALL} ${NN} A_VEC_BYTES=2 B_VEC_BYTES=16 BLOCK_K=64)
host_case(mma_tn_m16 gemm_sm80_mma ${TN} BLOCK_M=16 BLOCK_N=128 BLOCK_K=64 WARPS_M=1 WARPS_N=4)
host_case(mma_nt_m32 gemm_sm80_mma ${NT} BLOCK_M=32 BLOCK_N=64 BLOCK_K=64 WARPS_M=2 WARPS_N=2 STAGED_EPILOGUE=false)
host_case(mma_tt_m16 gemm_sm80_mma ${TT} BLOCK_M=16 BLOCK_N=64 BLOCK_K=64 WARPS_M=1 WARPS_N=4 SPLIT_K=4)
host_case(mma_nn_128x256 gemm_sm80_mma ${NN} BLOCK_M=128 BLOCK_N=256 BLOCK_K=32 WARPS_M=2 WARPS_N=4)
host_case(mma_tf32_tn gemm_sm80_mma ${SMALL} ${TN} ${TF32} STAGES=3)
host_case(mma_tf32_nn_v4 gemm_sm80_mma ${SMALL} ${NN} ${TF32} A_VEC_BYTES=4 B_VEC_BYTES=4 SPLIT_K=2)
host_case(mma_tf32_tt_k64 gemm_sm80_mma ${SMALL} ${TT} ${TF32} BLOCK_K=64 STAGES=2)
host_case(mma_tf32_nt_m16 gemm_sm80_mma ${NT} ${TF32} BLOCK_M=32 BLOCK_N=64 BLOCK_K=32 WARPS_M=2 WARPS_N=2 A_VEC_BYTES=8 B_VEC_BYTES=16)
host_case(simt_default gemm_simt)
host_case(simt_f64_nn gemm_simt ElementA=double ElementB=double Accumulator=double A_IS_K_CONTIGUOUS=true B_IS_N_CONTIGUOUS=true BLOCK_M=32 BLOCK_N=32 THREAD_M=2)
host_case(simt_i8_tt gemm_simt "ElementA=signed char" "ElementB=signed char" Accumulator=int A_IS_K_CONTIGUOUS=false B_IS_N_CONTIGUOUS=false BLOCK_K=8)
host_case(simt_mixed_nt gemm_simt ElementA=Half ElementB=float A_IS_K_CONTIGUOUS=false B_IS_N_CONTIGUOUS=true BLOCK_M=128 BLOCK_N=64 THREAD_M=8 THREAD_N=8)
host_case(simt_m16 gemm_simt BLOCK_M=16 BLOCK_N=128 BLOCK_K=16 THREAD_M=2 THREAD_N=8)
