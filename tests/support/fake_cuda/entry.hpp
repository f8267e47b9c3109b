/// The checks at the start of every entry point, and the card that the environment describes.
///
/// Threads: any.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace leasehold::fake_cuda {

struct Card {
  std::size_t memory_bytes;
  int devices;
  int compute_capability;  ///< 90
  int driver_version;      ///< 13000
};

/// Reads the environment on the first call.
const Card& card();

/// What a call requires.
enum class Needs { Nothing, Initialised, Device, Context };

/// Returns CUDA_SUCCESS, or the result that `function` must return at once: a planted failure, not
/// initialised, device lost, no current context.
CUresult enter(const char* function, Needs needs);

void set_initialised();
/// After this every call that uses the card returns `reason`. A second call does not change the
/// reason.
void lose(CUresult reason);
CUresult lost();  ///< CUDA_SUCCESS if the device is not lost.
void restore();

CUcontext primary_context();
/// The context ends for every thread once it was released as often as retained.
CUcontext retain_context();
bool release_context();  ///< False if it is not retained.
bool has_context();
// These read the environment on every call.
int compute_mode();
bool is_under_mps();
int shared_memory_kib();
void set_current_context(CUcontext context);

}  // namespace leasehold::fake_cuda

// Returns from the entry point if a check fails.
#define FAKE_CUDA_ENTER(function, needs)                                                  \
  if (const CUresult entered =                                                            \
          ::leasehold::fake_cuda::enter(#function, ::leasehold::fake_cuda::Needs::needs); \
      entered != CUDA_SUCCESS)                                                            \
  return entered
