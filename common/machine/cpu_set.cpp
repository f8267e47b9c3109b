#include "common/machine/cpu_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

namespace leasehold {
namespace {

struct Range {
  unsigned first = 0;
  unsigned last = 0;
};

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number < CPU_SETSIZE ? std::optional(number) : std::nullopt;
}

std::optional<Range> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = number_of(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_of(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return Range{*first, *last};
}

std::unexpected<Error> pin_failed(int error) {
  return fail_errno(Errc::SystemError, "choosing the cores of a thread (`nproc --all` counts them)",
                    error);
}

}  // namespace

Result<CpuSet> CpuSet::parse(std::string_view list) {
  CpuSet cpus;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view part = list.substr(begin, end - begin);
    const auto range = range_of(part);
    if (!range) {
      return fail(Errc::BadRequest,
                  fmt::format("\"{}\" in the cores \"{}\" is neither a number below {} nor a range "
                              "like 0-3",
                              part, list, CPU_SETSIZE));
    }
    for (unsigned cpu = range->first; cpu <= range->last; ++cpu) CPU_SET(cpu, &cpus.bits_);
    begin = end + 1;
  }
  return cpus;
}

CpuSet CpuSet::of_this_thread() {
  CpuSet cpus;
  (void)::sched_getaffinity(0, sizeof cpus.bits_, &cpus.bits_);
  return cpus;
}

bool CpuSet::contains(const CpuSet& others) const {
  return others.without(*this).empty();
}

bool CpuSet::is_usable() const {
  const ScopedCpuAffinity tried(*this);  // the kernel drops cores that cannot be used
  return of_this_thread().contains(*this);
}

CpuSet CpuSet::without(const CpuSet& others) const {
  CpuSet left = common_with(others);
  CPU_XOR(&left.bits_, &bits_, &left.bits_);
  return left;
}

CpuSet CpuSet::common_with(const CpuSet& others) const {
  CpuSet both;
  CPU_AND(&both.bits_, &bits_, &others.bits_);
  return both;
}

CpuSet CpuSet::joined_with(const CpuSet& others) const {
  CpuSet all;
  CPU_OR(&all.bits_, &bits_, &others.bits_);
  return all;
}

Result<void> CpuSet::pin_this_thread() const {
  if (::sched_setaffinity(0, sizeof bits_, &bits_) == 0) return {};
  return pin_failed(errno);
}

Result<void> CpuSet::pin_thread(pthread_t thread) const {
  const int error = ::pthread_setaffinity_np(thread, sizeof bits_, &bits_);
  if (error == 0) return {};
  return pin_failed(error);
}

ScopedCpuAffinity::ScopedCpuAffinity(const CpuSet& cpus) {
  if (cpus.empty()) return;
  before_ = CpuSet::of_this_thread();
  (void)cpus.pin_this_thread();
}

ScopedCpuAffinity::~ScopedCpuAffinity() {
  if (!before_.empty()) (void)before_.pin_this_thread();
}

}  // namespace leasehold
