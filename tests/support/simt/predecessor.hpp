/// Memory that the kernel before an early one has not written yet.
///
/// Lifetime: the memory must live while kernels run. Threads: the one that runs kernels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace leasehold::simt {

struct UnfinishedMemory {
  std::span<std::byte> memory;
  std::vector<std::byte> before;  ///< What it holds until then; empty: NaNs.
};

class Predecessor {
 public:
  explicit Predecessor(std::vector<UnfinishedMemory> unfinished);

  /// Takes the final content away. Does nothing if it is away.
  void begin();
  /// Stores the final content, and so overwrites what a kernel stored too early.
  void end();

 private:
  std::vector<UnfinishedMemory> unfinished_;
  std::vector<std::vector<std::byte>> written_;  ///< Empty: the predecessor has ended.
};

}  // namespace leasehold::simt
