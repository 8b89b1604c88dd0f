/* Kernelwright's run-time library: finds tuned kernels in a database and launches them on the caller's context and stream.
 *
 *   kw_open -> kw_find -> kw_workspace_bytes -> kw_launch ... -> kw_kernel_release -> kw_close
 *
 * Every call returns a status; kw_last_error() is the sentence that belongs to the last one that failed on this thread. Nothing throws and
 * nothing prints. All calls may be made from any number of threads at once; a handle is only released while no other call uses it.
 * The library makes no context, allocates no device memory, copies nothing and waits for nothing: it loads the stored code into the
 * context that is current. What it allocates on the host is bounded (README.md beside this folder has the numbers).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELWRIGHT_H
#define KERNELWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_MSC_VER)
#define KW_API
#else
#define KW_API __attribute__((visibility("default")))
#endif

/* The interface that this header declares. A library of the same major number and at least this minor number serves it. */
#define KW_VERSION_MAJOR 1
#define KW_VERSION_MINOR 0
#define KW_VERSION (KW_VERSION_MAJOR << 16 | KW_VERSION_MINOR)

typedef enum kw_status {
  KW_OK = 0,
  KW_BAD_ARGUMENT = 1, /* null pointer, unknown or missing name, number out of range, misaligned tensor, workspace too small */
  KW_NOT_FOUND = 2,    /* no such database or op; no stored kernel for this device or legal at this problem */
  KW_BAD_DATABASE = 3, /* not a database, damaged, of a newer version, locked, unreadable */
  KW_NO_CONTEXT = 4,   /* no driver, or no context is current on this thread */
  KW_WRONG_DEVICE = 5, /* the context's device is of another model than the kernel's; a stream of another context */
  KW_DRIVER = 6,       /* the driver refused a call, or an earlier kernel broke the context */
  KW_OUT_OF_MEMORY = 7,
  KW_INTERNAL = 8 /* a fault of this library */
} kw_status;

/* How well a stored kernel answers. */
typedef enum kw_match {
  KW_EXACT = 0,       /* measured at this problem on this device model */
  KW_NEAR = 1,        /* legal; measured where every dim is within a factor of two */
  KW_MODELLED = 2,    /* legal; measured only further away, or predicted and not measured */
  KW_OTHER_DEVICE = 3 /* of another device model: only with KW_FIND_OTHER_DEVICE */
} kw_match;

enum { KW_FIND_OTHER_DEVICE = 1 /* take kernels tuned or predicted for other devices whose code runs here */ };

typedef struct kw_database kw_database;
typedef struct kw_kernel kw_kernel; /* a stored kernel at one problem, for one device model */

/* Part of a problem: a dim "M", a stride "A.stride0" in elements, or a pointer's alignment "A.align" in bytes. Every dim is given; a stride
 * that is left out is that of a tensor without gaps, an alignment that is left out is the spec's promise. */
typedef struct kw_value {
  const char* name;
  int64_t value;
} kw_value;

typedef struct kw_arguments {
  /* Device addresses in the order of the spec; null only for a tensor without elements. Of a list of tensors (list = "L") the address of a
   * table of L device addresses, itself in device memory: it is read when the kernel runs. */
  void* const* tensors;
  size_t num_tensors;
  const double* scalars; /* in the order of the spec; rounded to their declared types */
  size_t num_scalars;
  void* workspace; /* device memory, 256 B aligned, any contents: kw_workspace_bytes */
  size_t workspace_bytes;
  /* Device memory, 256 B aligned: kw_zeroed_workspace_bytes. The caller fills it with zeros once; every launch leaves it zero, so it serves
   * launches of any kernel one after another. Launches that may run at the same time need one each, of both workspaces. */
  void* zeroed_workspace;
  size_t zeroed_workspace_bytes;
} kw_arguments;

/* KW_VERSION of the library. */
KW_API uint32_t kw_version(void);
/* "KW_NOT_FOUND"; "unknown status" for another number. */
KW_API const char* kw_status_name(kw_status status);
/* The last failure on this thread, in one sentence with place, value and rule; "" before the first. Valid until the thread's next call. */
KW_API const char* kw_last_error(void);

/* Opens a tuning database for reading; the file may be in use by a tuner. Needs no driver. */
KW_API kw_status kw_open(const char* path, kw_database** database);
/* Null is allowed. Kernels that were found stay usable until they are released. */
KW_API void kw_close(kw_database* database);

/* The best stored kernel for a problem on the current context's device. `op` is a name, an identity or a unique prefix of one.
 * The answer is remembered: a problem that was asked before costs a look-up. Rows that a tuner stores later are seen by a new kw_open.
 * On failure *kernel is null. */
KW_API kw_status kw_find(kw_database* database, const char* op, const kw_value* values, size_t num_values, unsigned flags,
                         kw_kernel** kernel);
/* Null is allowed. Every kw_find that succeeds is released once; the kernel's launches have ended by then. Code is unloaded with the last
 * kernel that uses it if its context is current then, else it stays until its context ends. */
KW_API void kw_kernel_release(kw_kernel* kernel);

/* Texts live as long as the kernel; for a null kernel they are "", numbers 0. */
KW_API kw_match kw_kernel_match(const kw_kernel* kernel);
KW_API const char* kw_kernel_explanation(const kw_kernel* kernel); /* one sentence on the match */
KW_API const char* kw_kernel_variant(const kw_kernel* kernel);     /* "gemm_sm80_mma__m128_n256_..." */
KW_API const char* kw_kernel_config(const kw_kernel* kernel);      /* "BLOCK_K=64,BLOCK_M=128,..." */
KW_API const char* kw_kernel_measured_at(const kw_kernel* kernel); /* the row's problem: "K=4096,M=1024,N=4096" */
KW_API double kw_kernel_time_us(const kw_kernel* kernel);          /* the row's median at that problem; 0 when it was not measured */
KW_API size_t kw_kernel_num_tensors(const kw_kernel* kernel);
KW_API const char* kw_kernel_tensor_name(const kw_kernel* kernel, size_t index); /* in spec order; "" beyond the last */
KW_API size_t kw_kernel_num_scalars(const kw_kernel* kernel);
KW_API const char* kw_kernel_scalar_name(const kw_kernel* kernel, size_t index);
KW_API size_t kw_workspace_bytes(const kw_kernel* kernel);
KW_API size_t kw_zeroed_workspace_bytes(const kw_kernel* kernel);

/* Loads the kernel's code into the current context ahead of the first launch there, which otherwise does it. */
KW_API kw_status kw_prepare(kw_kernel* kernel);
/* Enqueues the kernel on `stream` (a CUstream or cudaStream_t of the current context; null: the default stream). May be captured into a
 * graph, the first launch too; the addresses are copied, `arguments` need not outlive the call. A plan of several kernels is replayed as
 * one CUDA graph, made at the first launch with these arguments; eight of them are kept. Replays of one graph run one after another, on
 * whatever streams: a caller whose streams wait for each other in other ways captures his own. */
KW_API kw_status kw_launch(kw_kernel* kernel, const kw_arguments* arguments, void* stream);

#ifdef __cplusplus
}
#endif

#endif
