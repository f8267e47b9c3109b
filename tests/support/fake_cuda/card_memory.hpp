/// The card's memory as files, and how much of it is taken, by whichever process.
///
/// Every allocation is a file whose open description holds a shared lock. Handles, descriptors that
/// were handed on, and mappings all refer to that description, so the kernel itself keeps count:
/// while the lock stands somebody has the memory, and when the last one has gone, killed or not, it
/// does not. Files of one card lie in FAKE_CUDA_STATE; without it they are memfds, of this process.
///
/// Threads: any.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "common/unique_fd.hpp"

namespace leasehold::fake_cuda {

struct NewMemory {
  CUresult result = CUDA_SUCCESS;
  UniqueFd fd;
};

/// Memory full of 0xAB. OUT_OF_MEMORY when the card has not as much.
NewMemory allocate(std::size_t size_bytes);

/// What somebody still has.
std::size_t used_bytes();

/// Whether that is an allocation of a fake card; a descriptor from elsewhere is input.
bool is_card_memory(int fd);

}  // namespace leasehold::fake_cuda
