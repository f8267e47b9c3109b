/// A card for one test case: context, module, and a log that kernels append to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ipc/cuda/driver.hpp"
#include "tests/support/fake_cuda/card_state.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/unit/support/fake_cuda/kernels.hpp"

namespace leasehold::fake_cuda {

/// The card of this program, which its peers share.
const testing::CardState& card_state();

class Card {
 public:
  Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  ~Card();

  const cuda::Driver& driver() const { return *driver_; }
  CUfunction function(const char* name) const;
  CUcontext context() const { return context_; }
  CUstream stream() const { return stream_; }
  CUstream new_stream(int priority = 0);

  /// Launches a kernel of 32 threads that appends `value` to the log.
  CUresult append(std::uint32_t value) { return append(value, stream_); }
  CUresult append(std::uint32_t value, CUstream stream);
  CUDA_KERNEL_NODE_PARAMS node(CUfunction function, void** params) const;
  /// The log after all work is done.
  std::vector<std::uint32_t> log() const;
  /// The log so far.
  std::vector<std::uint32_t> log_so_far() const;
  std::uint32_t* device_log() const { return reinterpret_cast<std::uint32_t*>(log_); }

  std::size_t free_bytes() const;
  static CUmemAllocationProp memory();

 private:
  const cuda::Driver* driver_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUstream> more_streams_;
  CUdeviceptr log_ = 0;
};

}  // namespace leasehold::fake_cuda
