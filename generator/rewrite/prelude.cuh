// What CUDA gives every device source, as far as templates and user functions use it: attributes, built-in variables, vector types,
// intrinsics and math. Only the generator's parser reads this file; NVRTC and nvcc have the real things.
// SPDX-License-Identifier: Apache-2.0
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__ __attribute__((annotate("grid_constant")))
#define __cluster_dims__(...) __attribute__((annotate("cluster_dims")))
#define __maxnreg__(count) __attribute__((annotate("maxnreg")))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#define KW_VECTOR(type, name)                                                              \
  struct name##1 { type x; };                                                              \
  struct __align__(2 * sizeof(type)) name##2 { type x, y; };                               \
  struct name##3 { type x, y, z; };                                                        \
  struct __align__(sizeof(type) < 4 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; }; \
  __device__ name##2 make_##name##2(type x, type y);                                       \
  __device__ name##3 make_##name##3(type x, type y, type z);                               \
  __device__ name##4 make_##name##4(type x, type y, type z, type w);
KW_VECTOR(signed char, char)
KW_VECTOR(unsigned char, uchar)
KW_VECTOR(short, short)
KW_VECTOR(unsigned short, ushort)
KW_VECTOR(int, int)
KW_VECTOR(unsigned int, uint)
KW_VECTOR(long long, longlong)
KW_VECTOR(unsigned long long, ulonglong)
KW_VECTOR(float, float)
KW_VECTOR(double, double)
#undef KW_VECTOR

struct dim3 {
  unsigned x, y, z;
};
extern const __device__ uint3 threadIdx;
extern const __device__ uint3 blockIdx;
extern const __device__ dim3 blockDim;
extern const __device__ dim3 gridDim;
extern const __device__ int warpSize;

__device__ void __syncwarp(unsigned mask = 0xffffffffu);
__device__ int __syncthreads_or(int predicate);
__device__ int __syncthreads_and(int predicate);
__device__ int __syncthreads_count(int predicate);
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ void __threadfence_system();
__device__ void __trap();
__device__ void __brkpt();
__device__ void __nanosleep(unsigned ns);
__device__ long long clock64();
__device__ int printf(const char* format, ...);
__device__ unsigned __activemask();
__device__ unsigned __ballot_sync(unsigned mask, int predicate);
__device__ int __any_sync(unsigned mask, int predicate);
__device__ int __all_sync(unsigned mask, int predicate);
template <typename T>
__device__ T __shfl_sync(unsigned mask, T value, int lane, int width = 32);
template <typename T>
__device__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32);
template <typename T>
__device__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32);
template <typename T>
__device__ T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32);
template <typename T>
__device__ T __ldg(const T* pointer);
template <typename T>
__device__ T __ldcg(const T* pointer);
template <typename T>
__device__ T __ldcs(const T* pointer);
template <typename T>
__device__ void __stcs(T* pointer, T value);
template <typename T>
__device__ void __stcg(T* pointer, T value);
__device__ size_t __cvta_generic_to_shared(const void* pointer);
__device__ size_t __cvta_generic_to_global(const void* pointer);
template <typename T>
__device__ T atomicAdd(T* address, T value);
template <typename T>
__device__ T atomicExch(T* address, T value);
template <typename T>
__device__ T atomicMax(T* address, T value);
template <typename T>
__device__ T atomicMin(T* address, T value);
template <typename T>
__device__ T atomicOr(T* address, T value);
template <typename T>
__device__ T atomicAnd(T* address, T value);
template <typename T>
__device__ T atomicCAS(T* address, T compare, T value);
__device__ unsigned atomicInc(unsigned* address, unsigned value);
__device__ unsigned atomicDec(unsigned* address, unsigned value);

__device__ unsigned __float_as_uint(float x);
__device__ int __float_as_int(float x);
__device__ float __uint_as_float(unsigned x);
__device__ float __int_as_float(int x);
__device__ long long __double_as_longlong(double x);
__device__ double __longlong_as_double(long long x);
__device__ int __float2int_rn(float x);
__device__ int __float2int_rz(float x);
__device__ unsigned __byte_perm(unsigned x, unsigned y, unsigned selector);
__device__ int __popc(unsigned x);
__device__ int __ffs(int x);
__device__ int __clz(int x);
__device__ unsigned __brev(unsigned x);
__device__ unsigned __umulhi(unsigned x, unsigned y);
__device__ unsigned long long __umul64hi(unsigned long long x, unsigned long long y);
__device__ int __dp4a(int a, int b, int c);

__device__ int min(int a, int b);
__device__ unsigned min(unsigned a, unsigned b);
__device__ long long min(long long a, long long b);
__device__ unsigned long long min(unsigned long long a, unsigned long long b);
__device__ float min(float a, float b);
__device__ double min(double a, double b);
__device__ int max(int a, int b);
__device__ unsigned max(unsigned a, unsigned b);
__device__ long long max(long long a, long long b);
__device__ unsigned long long max(unsigned long long a, unsigned long long b);
__device__ float max(float a, float b);
__device__ double max(double a, double b);
__device__ int abs(int x);
__device__ long long abs(long long x);
__device__ float abs(float x);
__device__ double abs(double x);

#define KW_MATH1(name)              \
  __device__ double name(double x); \
  __device__ float name(float x);   \
  __device__ float name##f(float x);
#define KW_MATH2(name)                        \
  __device__ double name(double x, double y); \
  __device__ float name(float x, float y);    \
  __device__ float name##f(float x, float y);
KW_MATH1(sqrt)
KW_MATH1(rsqrt)
KW_MATH1(cbrt)
KW_MATH1(exp)
KW_MATH1(exp2)
KW_MATH1(exp10)
KW_MATH1(expm1)
KW_MATH1(log)
KW_MATH1(log2)
KW_MATH1(log10)
KW_MATH1(log1p)
KW_MATH1(sin)
KW_MATH1(cos)
KW_MATH1(tan)
KW_MATH1(sinh)
KW_MATH1(cosh)
KW_MATH1(tanh)
KW_MATH1(asin)
KW_MATH1(acos)
KW_MATH1(atan)
KW_MATH1(erf)
KW_MATH1(erfc)
KW_MATH1(floor)
KW_MATH1(ceil)
KW_MATH1(trunc)
KW_MATH1(rint)
KW_MATH1(round)
KW_MATH1(fabs)
KW_MATH2(fmin)
KW_MATH2(fmax)
KW_MATH2(fmod)
KW_MATH2(pow)
KW_MATH2(atan2)
KW_MATH2(copysign)
KW_MATH2(fdim)
KW_MATH2(hypot)
#undef KW_MATH1
#undef KW_MATH2
__device__ double fma(double x, double y, double z);
__device__ float fma(float x, float y, float z);
__device__ float fmaf(float x, float y, float z);
__device__ float __fmaf_rn(float x, float y, float z);
__device__ float __fadd_rn(float x, float y);
__device__ float __fmul_rn(float x, float y);
__device__ float __fdividef(float x, float y);
__device__ float __frcp_rn(float x);
__device__ float __fsqrt_rn(float x);
__device__ float __expf(float x);
__device__ float __exp2f(float x);
__device__ float __logf(float x);
__device__ float __log2f(float x);
__device__ float __sinf(float x);
__device__ float __cosf(float x);
__device__ float __powf(float x, float y);
__device__ double __dadd_rn(double x, double y);
__device__ double __dmul_rn(double x, double y);
__device__ bool isfinite(float x);
__device__ bool isfinite(double x);
__device__ bool isnan(float x);
__device__ bool isnan(double x);
__device__ bool isinf(float x);
__device__ bool isinf(double x);
__device__ bool signbit(float x);
__device__ bool signbit(double x);
