// GgufFile::length and get decode metadata from the mapping. The directory reader checked all
// extents, so only types and values can be wrong here.
#include <fmt/format.h>

#include <type_traits>
#include <vector>

#include "worker/gguf/gguf.hpp"
#include "worker/gguf/gguf_cursor.hpp"

namespace leasehold {
namespace {

std::unexpected<Error> wrong_type(std::string_view path, std::string_view key,
                                  const GgufValue& value, std::string_view wanted) {
  const bool is_array = value.type == GgufType::Array;
  return fail(Errc::UnsupportedModel,
              fmt::format("{}: metadata {} is {}{}; this build reads it as {}", path, key,
                          is_array ? "an array of " : "", name(value.element_type), wanted));
}

/// An integer of any width as a sign and 64 bits.
struct WideInteger {
  bool is_negative;
  std::uint64_t magnitude;
};

template <class T>
Result<WideInteger> take_wide(GgufCursor& in, std::string_view key) {
  const T number = TRY(in.take<T>(key));
  if constexpr (std::is_signed_v<T>) {
    if (number < 0) return WideInteger{true, 0};
  }
  return WideInteger{false, static_cast<std::uint64_t>(number)};
}

Result<WideInteger> take_integer(GgufCursor& in, std::string_view path, std::string_view key,
                                 const GgufValue& value) {
  switch (value.type) {
    case GgufType::Uint8:
      return take_wide<std::uint8_t>(in, key);
    case GgufType::Int8:
      return take_wide<std::int8_t>(in, key);
    case GgufType::Uint16:
      return take_wide<std::uint16_t>(in, key);
    case GgufType::Int16:
      return take_wide<std::int16_t>(in, key);
    case GgufType::Uint32:
      return take_wide<std::uint32_t>(in, key);
    case GgufType::Int32:
      return take_wide<std::int32_t>(in, key);
    case GgufType::Uint64:
      return take_wide<std::uint64_t>(in, key);
    case GgufType::Int64:
      return take_wide<std::int64_t>(in, key);
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
  if constexpr (std::is_same_v<T, std::string>) return GgufType::String;
}

template <class T>
Result<std::vector<T>> take_array(GgufCursor& in, std::string_view path, std::string_view key,
                                  const GgufValue& value) {
  if (value.type != GgufType::Array || value.element_type != type_of<T>())
    return wrong_type(path, key, value, fmt::format("an array of {}", name(type_of<T>())));
  std::vector<T> elements;
  elements.reserve(value.count);  // bounded: each element takes at least four bytes of the file
  for (std::uint64_t i = 0; i < value.count; ++i) {
    if constexpr (std::is_same_v<T, std::string>)
      elements.emplace_back(TRY(in.take_string(key)));
    else
      elements.push_back(TRY(in.take<T>(key)));
  }
  return elements;
}

}  // namespace

Result<std::uint64_t> GgufFile::length(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  if (found.type != GgufType::Array) return wrong_type(path_, key, found, "an array");
  return found.count;
}

template <>
Result<std::uint64_t> GgufFile::get(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  GgufCursor in(bytes(), path_, found.offset);
  const WideInteger number = TRY(take_integer(in, path_, key, found));
  if (number.is_negative)
    return fail(Errc::FileCorrupt, fmt::format("{}: metadata {} is negative", path_, key));
  return number.magnitude;
}

template <>
Result<std::uint32_t> GgufFile::get(std::string_view key) const {
  const std::uint64_t number = TRY(get<std::uint64_t>(key));
  if (number > UINT32_MAX)
    return fail(Errc::UnsupportedModel,
                fmt::format("{}: metadata {} is {}, more than 32 bits", path_, key, number));
  return static_cast<std::uint32_t>(number);
}

template <>
Result<float> GgufFile::get(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  if (found.type != GgufType::Float32) return wrong_type(path_, key, found, "float32");
  return GgufCursor(bytes(), path_, found.offset).take<float>(key);
}

template <>
Result<bool> GgufFile::get(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  if (found.type != GgufType::Bool) return wrong_type(path_, key, found, "bool");
  GgufCursor in(bytes(), path_, found.offset);
  const auto byte = TRY(in.take<std::uint8_t>(key));
  if (byte > 1)
    return in.corrupt(found.offset, fmt::format("metadata {} is {}, not 0 or 1", key, byte));
  return byte == 1;
}

template <>
Result<std::string> GgufFile::get(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  if (found.type != GgufType::String) return wrong_type(path_, key, found, "string");
  return std::string(TRY(GgufCursor(bytes(), path_, found.offset).take_string(key)));
}

template <>
Result<std::vector<std::string>> GgufFile::get(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  GgufCursor in(bytes(), path_, found.offset);
  return take_array<std::string>(in, path_, key, found);
}

template <>
Result<std::vector<float>> GgufFile::get(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  GgufCursor in(bytes(), path_, found.offset);
  return take_array<float>(in, path_, key, found);
}

template <>
Result<std::vector<std::int32_t>> GgufFile::get(std::string_view key) const {
  const GgufValue found = TRY(value(key));
  GgufCursor in(bytes(), path_, found.offset);
  return take_array<std::int32_t>(in, path_, key, found);
}

}  // namespace leasehold
