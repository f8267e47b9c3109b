/// Device names: "cpu", "cuda:0" …, or "auto".
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold {

/// The highest card number accepted.
inline constexpr int kMaxCudaOrdinal = 255;

/// N of "cuda:N"; nothing for any other text.
inline std::optional<int> cuda_ordinal(std::string_view device) {
  constexpr std::string_view kCudaPrefix = "cuda:";
  if (!device.starts_with(kCudaPrefix)) return std::nullopt;
  const std::string_view digits = device.substr(kCudaPrefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (number < 0 || number > kMaxCudaOrdinal || (digits.size() > 1 && digits.front() == '0'))
    return std::nullopt;
  return number;
}

/// A check for command-line options: empty for a device name, otherwise the error.
inline std::string check_device(const std::string& device) {
  if (device == "auto" || device == "cpu" || cuda_ordinal(device)) return {};
  return "'" + device + "' is not a device; use auto, cpu, or cuda:N with N from 0 to 255";
}

}  // namespace leasehold
