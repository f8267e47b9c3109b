// Decodes metadata. The directory reader checked all extents, so only types and values can be wrong
// here.
#include <fmt/format.h>

#include <type_traits>
#include <vector>

#include "kernels/model/gguf/gguf.hpp"
#include "kernels/model/gguf/gguf_cursor.hpp"
#include "kernels/model/gguf/gguf_head.hpp"

namespace leasehold {
namespace {

std::unexpected<Error> wrong_type(std::string_view path, std::string_view key,
                                  const GgufValue& value, std::string_view wanted) {
  const bool is_array = value.type == GgufType::Array;
  return fail(Errc::UnsupportedModel,
              fmt::format("{}: metadata {} is {}{}; this build reads it as {}", path, key,
                          is_array ? "an array of " : "", name(value.element_type), wanted));
}

// Holds any 64-bit integer, with or without a sign.
__extension__ using Wide = __int128;

Result<Wide> take_integer(GgufCursor& in, std::string_view path, std::string_view key,
                          const GgufValue& value) {
  switch (value.type) {
    case GgufType::Uint8:
      return in.take<std::uint8_t>(key);
    case GgufType::Int8:
      return in.take<std::int8_t>(key);
    case GgufType::Uint16:
      return in.take<std::uint16_t>(key);
    case GgufType::Int16:
      return in.take<std::int16_t>(key);
    case GgufType::Uint32:
      return in.take<std::uint32_t>(key);
    case GgufType::Int32:
      return in.take<std::int32_t>(key);
    case GgufType::Uint64:
      return in.take<std::uint64_t>(key);
    case GgufType::Int64:
      return in.take<std::int64_t>(key);
    case GgufType::Float32:
    case GgufType::Float64:
    case GgufType::Bool:
    case GgufType::String:
    case GgufType::Array:
      break;
  }
  return wrong_type(path, key, value, "an integer");
}

template <class T>
constexpr GgufType type_of() {
  if constexpr (std::is_same_v<T, float>) return GgufType::Float32;
  if constexpr (std::is_same_v<T, std::int32_t>) return GgufType::Int32;
  if constexpr (std::is_same_v<T, bool>) return GgufType::Bool;
  if constexpr (std::is_same_v<T, std::string>) return GgufType::String;
}

template <class T>
Result<T> take_one(GgufCursor& in, std::string_view key) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(TRY(in.take_string(key)));
  } else if constexpr (std::is_same_v<T, bool>) {
    const std::uint64_t at = in.position();
    const auto byte = TRY(in.take<std::uint8_t>(key));
    if (byte > 1) return in.corrupt(at, fmt::format("metadata {} is {}, not 0 or 1", key, byte));
    return byte == 1;
  } else {
    return in.take<T>(key);
  }
}

template <class T>
Result<std::vector<T>> take_array(GgufCursor& in, std::string_view path, std::string_view key,
                                  const GgufValue& value) {
  if (value.type != GgufType::Array || value.element_type != type_of<T>())
    return wrong_type(path, key, value, fmt::format("an array of {}", name(type_of<T>())));
  std::vector<T> elements;
  elements.reserve(value.count);  // bounded: the file has the bytes of all elements
  for (std::uint64_t i = 0; i < value.count; ++i) elements.push_back(TRY(take_one<T>(in, key)));
  return elements;
}

template <class T>
Result<T> decoded(std::span<const std::byte> bytes, std::string_view path, std::string_view key,
                  const GgufValue& found) {
  GgufCursor in(bytes, path, found.offset);
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    const Wide number = TRY(take_integer(in, path, key, found));
    if (number >= 0) return static_cast<std::uint64_t>(number);
    return fail(Errc::FileCorrupt, fmt::format("{}: metadata {} is negative", path, key));
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    const Wide number = TRY(take_integer(in, path, key, found));
    if (number <= INT64_MAX) return static_cast<std::int64_t>(number);
    return fail(Errc::UnsupportedModel,
                fmt::format("{}: metadata {} is more than 63 bits", path, key));
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    const std::uint64_t number = TRY(decoded<std::uint64_t>(bytes, path, key, found));
    if (number <= UINT32_MAX) return static_cast<std::uint32_t>(number);
    return fail(Errc::UnsupportedModel,
                fmt::format("{}: metadata {} is {}, more than 32 bits", path, key, number));
  } else if constexpr (requires { typename T::allocator_type; } &&
                       !std::is_same_v<T, std::string>) {
    return take_array<typename T::value_type>(in, path, key, found);
  } else {
    if (found.type != type_of<T>()) return wrong_type(path, key, found, name(type_of<T>()));
    return take_one<T>(in, key);
  }
}

}  // namespace

Result<std::uint64_t> GgufFile::length(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  if (found.type != GgufType::Array) return wrong_type(path_, key, found, "an array");
  return found.count;
}

template <class T>
Result<T> GgufFile::get(std::string_view key) const {
  return decoded<T>(bytes(), path_, key, TRY(value(key)));
}

template <class T>
Result<T> GgufHead::get_or(std::string_view key, T fallback) const {
  const auto entry = directory_.metadata.find(key);
  if (entry == directory_.metadata.end()) return fallback;
  return decoded<T>(head_, path_, key, entry->second);
}

template Result<std::uint32_t> GgufHead::get_or(std::string_view key, std::uint32_t) const;
template Result<float> GgufHead::get_or(std::string_view key, float) const;
template Result<std::string> GgufHead::get_or(std::string_view key, std::string) const;

template Result<std::uint64_t> GgufFile::get(std::string_view key) const;
template Result<std::int64_t> GgufFile::get(std::string_view key) const;
template Result<std::uint32_t> GgufFile::get(std::string_view key) const;
template Result<float> GgufFile::get(std::string_view key) const;
template Result<bool> GgufFile::get(std::string_view key) const;
template Result<std::string> GgufFile::get(std::string_view key) const;
template Result<std::vector<std::string>> GgufFile::get(std::string_view key) const;
template Result<std::vector<float>> GgufFile::get(std::string_view key) const;
template Result<std::vector<std::int32_t>> GgufFile::get(std::string_view key) const;
template Result<std::vector<bool>> GgufFile::get(std::string_view key) const;

}  // namespace leasehold
