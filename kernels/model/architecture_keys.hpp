/// Reads metadata keys of one file's architecture: for a llama, `keys.count("block_count", …)`
/// reads "llama.block_count". Errors contain the whole key.
///
/// Lifetime: the file outlives the object.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

/// Longer contexts are refused, because the RoPE angles must stay in the range of sin_cos.
inline constexpr std::uint32_t kMaxContext = 1u << 24;

/// Far above any width of a model, and far below one whose products overflow 32 bits.
inline constexpr std::uint32_t kMaxWidth = 1u << 20;

/// A key that this build ignores if it has its neutral value, and refuses otherwise.
struct UnsupportedKey {
  std::string_view suffix;
  float neutral_value;
};

class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}

  std::string key(std::string_view suffix) const {
    return fmt::format("{}.{}", architecture_, suffix);
  }
  bool has(std::string_view suffix) const { return file_.has(key(suffix)); }
  bool is_array(std::string_view suffix) const { return file_.length(key(suffix)).has_value(); }

  /// A number from 1 to `max`.
  Result<std::uint32_t> count(std::string_view suffix, std::uint32_t max) const {
    const auto number = TRY(file_.get<std::uint32_t>(key(suffix)));
    if (number == 0) return corrupt("{} is 0", key(suffix));
    if (number > max)
      return unsupported("{} is {}; this build supports at most {}", key(suffix), number, max);
    return number;
  }

  /// Like `count`, but returns `fallback` if the key is missing.
  Result<std::uint32_t> count_or(std::string_view suffix, std::uint32_t max,
                                 std::uint32_t fallback) const {
    if (!has(suffix)) return fallback;
    return count(suffix, max);
  }

  /// A number of each layer, from `least` on: a list of `n_layers` numbers, or one number for all.
  Result<std::vector<std::uint32_t>> counts(std::string_view suffix, std::uint32_t least,
                                            std::uint32_t max, std::uint32_t n_layers) const {
    if (!is_array(suffix)) return std::vector(n_layers, TRY(count(suffix, max)));
    const auto list = TRY(get<std::vector<std::int32_t>>(suffix));
    if (list.size() != n_layers)
      return corrupt("{} has {} elements for {} layers", key(suffix), list.size(), n_layers);
    for (const std::int32_t number : list) {
      if (number < static_cast<std::int32_t>(least))
        return corrupt("{} has the element {}", key(suffix), number);
      if (static_cast<std::uint32_t>(number) > max)
        return unsupported("{} has the element {}; this build supports at most {}", key(suffix),
                           number, max);
    }
    return std::vector<std::uint32_t>(list.begin(), list.end());
  }

  template <class T>
  Result<T> get(std::string_view suffix) const {
    return file_.get<T>(key(suffix));
  }
  template <class T>
  Result<T> get_or(std::string_view suffix, T fallback) const {
    return file_.get_or<T>(key(suffix), std::move(fallback));
  }

  /// A number, whether the file has it as an integer or not.
  Result<float> number_or(std::string_view suffix, float fallback) const {
    if (!has(suffix)) return fallback;
    if (const auto integer = get<std::int64_t>(suffix)) return static_cast<float>(*integer);
    return get<float>(suffix);
  }

  /// Returns `value` if it is strictly between `low` and `high`.
  Result<float> between(std::string_view suffix, float low, float high, float value) const {
    if (value > low && value < high) return value;
    return corrupt("{} is {}, not between {} and {}", key(suffix), value, low, high);
  }

  /// A scale, or `fallback` if the file has none or writes 0 for it. The bounds keep quotients and
  /// squares of scales finite.
  Result<float> scale_or(std::string_view suffix, float fallback) const {
    const auto scale = TRY(get_or<float>(suffix, 0.0f));
    if (scale == 0.0f) return fallback;
    return between(suffix, 1e-6f, 1e6f, scale);
  }

  template <class... Values>
  std::unexpected<Error> corrupt(fmt::format_string<Values...> text, Values&&... values) const {
    return refuse(Errc::FileCorrupt, fmt::format(text, std::forward<Values>(values)...));
  }
  template <class... Values>
  std::unexpected<Error> unsupported(fmt::format_string<Values...> text, Values&&... values) const {
    return refuse(Errc::UnsupportedModel, fmt::format(text, std::forward<Values>(values)...));
  }

 private:
  std::unexpected<Error> refuse(Errc code, const std::string& text) const {
    return fail(code, fmt::format("{}: {}", file_.path(), text));
  }

  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace leasehold
