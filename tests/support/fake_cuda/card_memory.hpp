/// The card's memory as files, and the number of used bytes over all processes.
///
/// Every allocation is a file whose open description holds a shared lock. Handles, exported
/// descriptors and mappings all refer to that description, so the kernel keeps count: memory is in
/// use while the lock exists, and free after the last reference is gone, even if its process was
/// killed. The files of one card are in FAKE_CUDA_STATE; without it they are memfds of this
/// process.
///
/// Threads: any.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "common/machine/unique_fd.hpp"

namespace leasehold::fake_cuda {

struct NewMemory {
  CUresult result = CUDA_SUCCESS;
  UniqueFd fd;
};

/// Returns memory filled with 0xAB. OUT_OF_MEMORY if the card has less.
NewMemory allocate(std::size_t size_bytes);

/// Bytes in use over all processes.
std::size_t used_bytes();

/// Whether the descriptor is an allocation of a fake card. Descriptors from other processes are
/// input.
bool is_card_memory(int fd);

}  // namespace leasehold::fake_cuda
