#include "tests/tidy/class_rules.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "tests/tidy/class_scanner.hpp"

namespace leasehold::tidy {
namespace {

constexpr ClassLimits kLimits;

constexpr auto kExceptions = std::to_array<ClassException>({
    // Records: named values whose few functions only query them.
    {"leasehold::LeaseRecord",
     {.data_members = 43},
     "One row of the lease book; its calls and its end are records of their own."},
    {"leasehold::PromptRequest",
     {.data_members = 22},
     "The fields of a tenant's message, and what the scheduler notes."},
    {"leasehold::State", {.data_members = 22}, "One member for each book of the pure decisions."},
    {"leasehold::Tenancy",
     {.data_members = 17},
     "One row of the scheduler: the pools and queues of a lease."},
    {"leasehold::Worker",
     {.data_members = 36},
     "One row of the book of workers: most are fields of its announcement."},

    // One overload for each alternative of a variant.
    {"leasehold::brokerctl::Runner", {.functions = 43}, "One function for each verb."},
});

bool keeps(const ClassSize& size, const ClassLimits& limits) {
  const bool is_record = size.functions == size.defaulted;
  return size.implementation_lines <= limits.implementation_lines &&
         size.functions - size.defaulted <= limits.functions &&
         (is_record || size.data_members <= limits.data_members);
}

std::string sizes_of(const ClassSize& size) {
  return size.name + ": " + std::to_string(size.implementation_lines) +
         " lines of implementation, " + std::to_string(size.functions) + " functions, " +
         std::to_string(size.data_members) + " data members";
}

}  // namespace

Findings classes_over_limits(const Sources& sources, std::span<const ClassException> exceptions) {
  Sources product;
  std::ranges::copy_if(sources, std::back_inserter(product),
                       [](const SourceFile& file) { return !file.path.starts_with("tests/"); });
  const ScannedClasses scanned = scan_classes(product);
  Findings findings;
  for (const std::string& path : scanned.unreadable)
    findings.push_back({path, 0, "the brackets do not match"});
  std::vector<bool> is_needed(exceptions.size());
  for (const ClassSize& size : scanned.classes) {
    if (keeps(size, kLimits)) continue;
    const auto exception = std::ranges::find(exceptions, size.name, &ClassException::name);
    if (exception != exceptions.end()) is_needed[exception - exceptions.begin()] = true;
    if (exception == exceptions.end() || !keeps(size, exception->limits))
      findings.push_back({size.path, size.line, sizes_of(size)});
  }
  for (std::size_t i = 0; i < exceptions.size(); ++i) {
    if (!is_needed[i])
      findings.push_back({"tests/tidy/class_rules.cpp", 0,
                          "no class needs the exception " + std::string(exceptions[i].name)});
  }
  return findings;
}

Findings classes_too_large(const Sources& sources) {
  return classes_over_limits(sources, kExceptions);
}

}  // namespace leasehold::tidy
