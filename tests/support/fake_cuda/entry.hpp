/// What every entry point does first, and the card as the environment describes it.
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

/// As the environment says when this is first called.
const Card& card();

/// What a call needs before it may do anything.
enum class Needs { Nothing, Initialised, Device, Context };

/// CUDA_SUCCESS, or what `function` returns at once: a planted failure, not initialised, lost, no
/// current context.
CUresult enter(const char* function, Needs needs);

void set_initialised();
/// Every later call that is about the card returns `reason`, the first one named stays.
void lose(CUresult reason);
CUresult lost();  ///< CUDA_SUCCESS when it is not.
void restore();

CUcontext primary_context();
/// Gone, with every thread's current one, when it was released as often as retained.
CUcontext retain_context();
bool release_context();  ///< False when nobody retains it.
bool has_context();
int compute_mode();  ///< Asked anew at every call.
void set_current_context(CUcontext context);

}  // namespace leasehold::fake_cuda

// Leaves the function if it may not begin.
#define FAKE_CUDA_ENTER(function, needs)                                                  \
  if (const CUresult entered =                                                            \
          ::leasehold::fake_cuda::enter(#function, ::leasehold::fake_cuda::Needs::needs); \
      entered != CUDA_SUCCESS)                                                            \
  return entered
