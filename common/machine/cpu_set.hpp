/// Sets of cores, and thread affinity.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstdint>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// A plain value. Threads: any; "this thread" is the calling thread.
class CpuSet {
 public:
  CpuSet() { CPU_ZERO(&bits_); }

  /// Parses "3" or "0-2,5". Errors: BadRequest.
  static Result<CpuSet> parse(std::string_view list);
  /// The cores on which this thread may run. Empty on a machine with more ids than CPU_SETSIZE.
  static CpuSet of_this_thread();

  bool empty() const { return count() == 0; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(CPU_COUNT(&bits_)); }
  bool contains(const CpuSet& others) const;
  /// True when this process may run on all of them. That can be more than where it runs now: a
  /// program that was pinned at its start may move. Source: sched_setaffinity(2).
  bool is_usable() const;
  bool has(std::uint32_t cpu) const { return cpu < CPU_SETSIZE && CPU_ISSET(cpu, &bits_); }
  CpuSet without(const CpuSet& others) const;
  CpuSet common_with(const CpuSet& others) const;
  CpuSet joined_with(const CpuSet& others) const;

  /// Restricts this thread, and threads it starts, to these cores.
  /// Errors: SystemError when this process may use none of them.
  Result<void> pin_this_thread() const;
  /// Restricts a thread of this process likewise. Errors: as above.
  Result<void> pin_thread(pthread_t thread) const;

 private:
  cpu_set_t bits_;
};

/// Restricts this thread to some cores during its lifetime; an empty set changes nothing. It
/// ignores errors, so check the set with CpuSet::pin_this_thread first.
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
