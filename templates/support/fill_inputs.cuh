// Fills a buffer with random numbers on the device: element i depends on (seed, i) alone, so the host computes any element by itself,
// bit for bit (tuner/verify/random_input.cpp is the same arithmetic, and a test compares them). Legal CUDA C++ with no includes;
// one kernel per element type: fill_input_f16(out, num_elements, kind, low, high, seed, num_sorted).
// Place in the pipeline: tuner/device fills inputs with it before a check and for each input set of a measurement.
//   kind 0  normal: 8 fields of 16 bits summed, mean taken off, one multiplication (Irwin-Hall of 8: mean 0, variance 1, |x| < 4.9)
//   kind 1  uniform: low + r·(high − low), r of 24 bits (f64: 53)
//   kind 2  integer in [low, high)
//   kind 3  ascending integers: element 0 is low, the last of num_sorted is high − 1
//   kind 4  distinct integers in [low, high): a keyed bijection of the position
// SPDX-License-Identifier: Apache-2.0
#pragma once

typedef unsigned long long RandomBits;

/// Finaliser: three rounds of xor-shift and odd multiply; every input bit flips each output bit with probability 1/2.
__device__ __forceinline__ RandomBits mix_bits(RandomBits x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 29;
  x *= 0xa3b195354a39b70dull;
  x ^= x >> 32;
  x *= 0x1b03738712fad5c9ull;
  return x ^ (x >> 31);
}

/// Word `which` (0 or 1) of element `offset`.
__device__ __forceinline__ RandomBits random_word(RandomBits seed, long long offset, int which) {
  const RandomBits key = mix_bits(seed + 0x632be59bd9b4e019ull);
  return mix_bits(key + (2ull * (RandomBits)offset + (RandomBits)which) * 0x9e6d62d06f6a9a9bull);
}

/// Sum of eight 16-bit fields less its mean, in [-262140, 262140]; standard deviation 53510.
__device__ __forceinline__ int normal_sum(RandomBits seed, long long offset) {
  int sum = -262140;
  for (int which = 0; which < 2; ++which) {
    const RandomBits word = random_word(seed, offset, which);
    sum += (int)(word & 0xffff) + (int)((word >> 16) & 0xffff) + (int)((word >> 32) & 0xffff) + (int)(word >> 48);
  }
  return sum;
}

/// A bijection of [0, span): rounds on the next power of two, walked until the value is inside.
__device__ __forceinline__ RandomBits permute_position(RandomBits seed, RandomBits position, RandomBits span) {
  int num_bits = 1;
  while (num_bits < 62 && ((RandomBits)1 << num_bits) < span) ++num_bits;
  const RandomBits mask = ((RandomBits)1 << num_bits) - 1;
  const int shift = (num_bits + 1) / 2;
  RandomBits x = position % span;
  do {
    for (int round = 0; round < 4; ++round) {
      const RandomBits key = mix_bits(seed + 0x632be59bd9b4e019ull + (RandomBits)round);
      x = (x * (key | 1) + (key >> 32)) & mask;
      x ^= x >> shift;
    }
  } while (x >= span);
  return x;
}

/// Kinds 2 to 4.
__device__ __forceinline__ long long random_integer(int kind, double low, double high, RandomBits seed, long long num_sorted,
                                                    long long offset) {
  const long long first = (long long)low;
  const long long span = (long long)high - first;
  if (span <= 1) return first;
  if (kind == 4) return first + (long long)permute_position(seed, (RandomBits)offset, (RandomBits)span);
  const RandomBits word = random_word(seed, offset, 0);
  if (kind == 2) return first + (long long)__umul64hi(word, (RandomBits)span);
  if (offset <= 0) return first;
  if (offset >= num_sorted - 1) return first + span - 1;
  const long long quotient = span / num_sorted, rest = span % num_sorted;
  return first + offset * quotient + offset * rest / num_sorted + (long long)__umul64hi(word, (RandomBits)quotient);
}

__device__ __forceinline__ float random_float(int kind, double low, double high, RandomBits seed, long long num_sorted, long long offset) {
  if (kind == 0) return __fmul_rn((float)normal_sum(seed, offset), 1.8688068e-05f);
  if (kind != 1) return (float)random_integer(kind, low, high, seed, num_sorted, offset);
  const float unit = (float)(int)(random_word(seed, offset, 0) >> 40) * 5.9604644775390625e-08f;
  return __fadd_rn((float)low, __fmul_rn(unit, __fsub_rn((float)high, (float)low)));
}

__device__ __forceinline__ double random_double(int kind, double low, double high, RandomBits seed, long long num_sorted,
                                                long long offset) {
  if (kind == 0) return __dmul_rn((double)normal_sum(seed, offset), 1.8688068e-05);
  if (kind != 1) return (double)random_integer(kind, low, high, seed, num_sorted, offset);
  const double unit = (double)(long long)(random_word(seed, offset, 0) >> 11) * 1.1102230246251565404e-16;
  return __dadd_rn(low, __dmul_rn(unit, __dsub_rn(high, low)));
}

/// Rounds a finite float to a small format, to nearest even. Beyond the largest number: infinity, or NaN where the format has none.
__device__ __forceinline__ unsigned encode_float(float value, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const unsigned bits = (unsigned)__float_as_int(value);
  const unsigned magnitude = bits & 0x7fffffffu;
  const unsigned sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (int)(magnitude >> 23) - 127;
  if (exponent < -126) return sign;  // float subnormals do not occur here
  const int lowest = 1 - bias;
  const int shift = 23 - mantissa_bits + (exponent < lowest ? lowest - exponent : 0);
  if (shift > 25) return sign;
  const unsigned mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const unsigned rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  unsigned rounded = mantissa >> shift;
  if (rest > half || (rest == half && (rounded & 1u) != 0)) ++rounded;
  if (exponent >= lowest) rounded += (unsigned)(exponent - lowest) << mantissa_bits;
  const unsigned all_ones = ((1u << exponent_bits) - 1) << mantissa_bits;
  const unsigned overflow = has_infinity ? all_ones : all_ones | ((1u << mantissa_bits) - 1);
  return sign | (rounded > overflow ? overflow : rounded);
}

__device__ __forceinline__ long long saturate_integer(long long value, long long low, long long high) {
  return value < low ? low : value > high ? high : value;
}

/// Integers of a fill; the kinds of real numbers truncate toward zero.
__device__ __forceinline__ long long random_whole(int kind, double low, double high, RandomBits seed, long long num_sorted,
                                                  long long offset) {
  if (kind >= 2) return random_integer(kind, low, high, seed, num_sorted, offset);
  return (long long)random_float(kind, low, high, seed, num_sorted, offset);
}

__device__ __forceinline__ long long first_position() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ long long num_threads() { return (long long)gridDim.x * blockDim.x; }

extern "C" __global__ void fill_input_f16(unsigned short* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                          long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads())
    out[i] = (unsigned short)encode_float(random_float(kind, low, high, seed, num_sorted, i), 5, 10, true);
}

extern "C" __global__ void fill_input_bf16(unsigned short* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                           long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads())
    out[i] = (unsigned short)encode_float(random_float(kind, low, high, seed, num_sorted, i), 8, 7, true);
}

extern "C" __global__ void fill_input_e4m3(unsigned char* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                           long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads())
    out[i] = (unsigned char)encode_float(random_float(kind, low, high, seed, num_sorted, i), 4, 3, false);
}

extern "C" __global__ void fill_input_e5m2(unsigned char* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                           long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads())
    out[i] = (unsigned char)encode_float(random_float(kind, low, high, seed, num_sorted, i), 5, 2, true);
}

/// Also tf32, which is stored as f32.
extern "C" __global__ void fill_input_f32(float* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                          long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads()) out[i] = random_float(kind, low, high, seed, num_sorted, i);
}

extern "C" __global__ void fill_input_f64(double* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                          long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads()) out[i] = random_double(kind, low, high, seed, num_sorted, i);
}

extern "C" __global__ void fill_input_i8(signed char* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                         long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads())
    out[i] = (signed char)saturate_integer(random_whole(kind, low, high, seed, num_sorted, i), -128, 127);
}

extern "C" __global__ void fill_input_i32(int* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                          long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads())
    out[i] = (int)saturate_integer(random_whole(kind, low, high, seed, num_sorted, i), -2147483648ll, 2147483647ll);
}

extern "C" __global__ void fill_input_i64(long long* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                          long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads()) out[i] = random_whole(kind, low, high, seed, num_sorted, i);
}

extern "C" __global__ void fill_input_bool(unsigned char* out, long long num_elements, int kind, double low, double high, RandomBits seed,
                                           long long num_sorted) {
  for (long long i = first_position(); i < num_elements; i += num_threads())
    out[i] = random_whole(kind, low, high, seed, num_sorted, i) != 0 ? 1 : 0;
}
