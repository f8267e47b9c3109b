/// A driver without a card: libcuda.so.1 whose device memory is the host's and whose kernels run on
/// the CPU (tests/support/simt). These are the strings a test pulls.
///
/// A test that pulls them links leasehold::fake_cuda and has it loaded already when the product
/// asks for libcuda.so.1; others find it in their run path, programs they start by LD_LIBRARY_PATH,
/// which ctest sets.
///
/// Environment, read at the first call: FAKE_CUDA_MEMORY_MIB (256), FAKE_CUDA_DEVICES (1),
/// FAKE_CUDA_CC (90), FAKE_CUDA_DRIVER (13000), FAKE_CUDA_FAIL: a function of which every call
/// returns CUDA_ERROR_NOT_SUPPORTED, FAKE_CUDA_STATE: a directory, best on a tmpfs, by which
/// processes share one card's memory; without it each has a card of its own. At every call:
/// FAKE_CUDA_COMPUTE_MODE (0), by cuda.h's numbers; in any other nobody begins a context.
///
/// Stricter than a card: new memory holds 0xAB, dynamic shared memory NaNs; what a copy may do late
/// it does late; every kernel has a KiB of static shared memory; descriptors outlive an exec. Not
/// modelled: two kernels at the same time, faults of a kernel (the process dies), among them that
/// of reading host memory which is not registered.
///
/// Lifetime: until the process ends. Threads: any.
#pragma once

#include <cstdint>

extern "C" {

/// From now on no kernel, copy or memset begins but those that `fake_cuda_run` lets. Events happen.
void fake_cuda_hold();
/// Runs up to `n` of them, nodes of a graph counted singly, and returns how many there were to run.
std::uint64_t fake_cuda_run(std::uint64_t n);
/// Everything runs again by itself.
void fake_cuda_release();

/// Kernels that ran to their end; null: of any name.
std::uint64_t fake_cuda_kernel_count(const char* kernel);

/// How often `function` ("cuMemCreate") was called.
std::uint64_t fake_cuda_call_count(const char* function);
/// The next call of `function` returns `result` (a CUresult) and does nothing.
void fake_cuda_fail_next(const char* function, int result);

/// Nothing runs any more and every call that is about the card returns CUDA_ERROR_ILLEGAL_ADDRESS.
void fake_cuda_lose_device();
/// As it was before it was lost, with nothing queued: for the next case of the same process.
void fake_cuda_restore_device();

/// Where this library lies: for the LD_LIBRARY_PATH of programs that a test starts.
const char* fake_cuda_directory();
}
