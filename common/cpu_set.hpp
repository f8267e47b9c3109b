/// Cores, and threads kept on some of them.
#pragma once

#include <sched.h>

#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// Plain value. Threads: any; "this thread" is the caller's.
class CpuSet {
 public:
  CpuSet() { CPU_ZERO(&bits_); }

  /// "3", "0-2,5". Errors: BadRequest with what was wrong.
  static Result<CpuSet> parse(std::string_view list);
  /// Where this thread may run now.
  static CpuSet of_this_thread();

  bool empty() const { return CPU_COUNT(&bits_) == 0; }
  bool contains(const CpuSet& others) const;
  CpuSet without(const CpuSet& others) const;

  /// From now on this thread, and those it starts, run on these cores alone.
  /// Errors: SystemError when none of them is there, or open to this process.
  Result<void> pin_this_thread() const;

 private:
  cpu_set_t bits_;
};

/// Confines this thread while it lives; with an empty set it does nothing. What the kernel refuses
/// is left as it was: say so before, by CpuSet::pin_this_thread.
class ScopedCpuAffinity {
 public:
  explicit ScopedCpuAffinity(const CpuSet& cpus);
  ~ScopedCpuAffinity();
  ScopedCpuAffinity(const ScopedCpuAffinity&) = delete;
  ScopedCpuAffinity& operator=(const ScopedCpuAffinity&) = delete;

 private:
  CpuSet before_;
};

}  // namespace leasehold
