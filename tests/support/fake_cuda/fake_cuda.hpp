/// A driver without a card: a libcuda.so.1 whose device memory is host memory and whose kernels run
/// on the CPU (tests/support/simt). Tests control it with these functions.
///
/// A test that uses these functions links leasehold::fake_cuda, so the library is loaded before the
/// product opens libcuda.so.1. Other tests find it in their run path; programs that they start find
/// it through LD_LIBRARY_PATH, which ctest sets.
///
/// Environment, read at the first call:
///   - FAKE_CUDA_MEMORY_MIB (256), FAKE_CUDA_DEVICES (1), FAKE_CUDA_CC (90), FAKE_CUDA_DRIVER
///     (13000)
///   - FAKE_CUDA_FAIL: a function whose every call returns CUDA_ERROR_NOT_SUPPORTED
///   - FAKE_CUDA_STATE: a directory, best on a tmpfs, through which processes share one card's
///     memory; without it each process has a card of its own
/// Read at every call: FAKE_CUDA_COMPUTE_MODE (0), by cuda.h's numbers; in any other mode no
/// process can create a context. FAKE_CUDA_MPS (0): if not 0, MPS serves the card.
/// FAKE_CUDA_SHARED_KIB (227): the most shared memory of a block.
///
/// Stricter than a card: new memory holds 0xAB, dynamic shared memory NaNs; copies happen as late
/// as allowed; every kernel has a KiB of static shared memory; descriptors survive an exec; host
/// memory is registered only within one mapping of the process, and unregistered before that is
/// unmapped; a call may keep the driver's lock (`fake_cuda_hold_calls`). Not modelled: concurrent
/// kernels, and faults of a kernel (the process dies), including reads of unregistered host memory.
///
/// Lifetime: until the process ends. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// Holds the card: kernels, copies and memsets wait for `fake_cuda_run`. Events still complete.
void fake_cuda_hold();
/// Runs up to `n` held items, where each node of a graph counts; returns how many ran.
std::uint64_t fake_cuda_run(std::uint64_t n);
/// Ends the hold: everything runs by itself again.
void fake_cuda_release();

/// The number of completed kernels with that name; null: all kernels.
std::uint64_t fake_cuda_kernel_count(const char* kernel);

/// The number of calls of `function` ("cuMemCreate"); null: of all functions.
std::uint64_t fake_cuda_call_count(const char* function);
/// Makes the next call of `function` return `result` (a CUresult) without effect.
void fake_cuda_fail_next(const char* function, int result);
/// The same for the call after `n` others, for example to refuse one image of several.
void fake_cuda_fail_after(std::uint64_t n, const char* function, int result);

/// The next call of `function` ("cuMemMap") takes the driver's lock and keeps it until
/// `fake_cuda_release_calls`: it does not return, and every later call, of any function and thread,
/// waits. The card's own work continues, and calls that wait for it already hold no lock.
void fake_cuda_hold_calls(const char* function);
void fake_cuda_release_calls();
/// The number of calls that wait now: the one that keeps the lock, and those behind it.
std::uint64_t fake_cuda_held_calls();

/// The number of registered ranges of host memory; what a test leaves here has leaked.
std::size_t fake_cuda_registered_count();

/// Stops all work. Every later call that uses the card returns CUDA_ERROR_ILLEGAL_ADDRESS.
void fake_cuda_lose_device();
/// Restores a lost device with empty streams, for the next test case in the same process.
void fake_cuda_restore_device();

/// Whether a kernel that starts early finds NaNs where kernels wrote that need not have ended,
/// until it has waited for them. Slow, because all memory of the card is compared before each
/// launch.
void fake_cuda_hide_unfinished(bool hide);

/// The directory of this library, for the LD_LIBRARY_PATH of programs that a test starts.
const char* fake_cuda_directory();
}
