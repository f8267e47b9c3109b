/// The fixed time of a decode step and the rate at which it reads, from steps of two formats. Pure.
#pragma once

#include <cstdint>

namespace leasehold::gpu_check {

/// A step that reads `bytes` and takes `seconds`.
struct StepCost {
  double bytes = 0;
  double seconds = 0;
};

/// seconds = fixed_seconds + bytes / bytes_per_s
struct StepFit {
  double fixed_seconds = 0;
  double bytes_per_s = 0;
};

/// The line through both. Precondition: they differ in bytes and in seconds.
constexpr StepFit fit_steps(const StepCost& a, const StepCost& b) {
  const double rate = (b.bytes - a.bytes) / (b.seconds - a.seconds);
  return {.fixed_seconds = a.seconds - a.bytes / rate, .bytes_per_s = rate};
}

}  // namespace leasehold::gpu_check
