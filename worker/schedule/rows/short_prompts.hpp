/// The short prompts that wait beside running streams.
///
/// A short prompt is a stream soon, and a step with many streams takes little longer than one with
/// few. While such prompts wait, a worker that gives them little time computes few streams at once,
/// and all of them end later. A stream therefore waits longer for short prompts of its own tenant,
/// but not for those of other tenants.
///
/// Pure. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace leasehold {

struct TenantAccount;

struct ShortPrompts {
  /// Prompts per stream of the tenant that has the fewest, among the tenants with streams.
  double per_stream = 0;
  std::uint64_t work = 0;  ///< Of all short prompts that wait.
};

class ShortPromptCount {
 public:
  void add_stream(const TenantAccount& tenant) { ++of_[&tenant].streams; }
  void add_prompt(const TenantAccount& tenant, std::uint64_t work) {
    ++of_[&tenant].prompts;
    work_ += work;
  }
  ShortPrompts result() const {
    ShortPrompts all{.work = work_};
    bool is_first = true;
    for (const auto& [tenant, count] : of_) {
      if (count.streams == 0) continue;
      const double per_stream = static_cast<double>(count.prompts) / count.streams;
      all.per_stream = is_first ? per_stream : std::min(all.per_stream, per_stream);
      is_first = false;
    }
    return all;
  }

 private:
  struct Count {
    std::uint32_t streams = 0;
    std::uint32_t prompts = 0;
  };
  std::map<const TenantAccount*, Count> of_;
  std::uint64_t work_ = 0;
};

}  // namespace leasehold
