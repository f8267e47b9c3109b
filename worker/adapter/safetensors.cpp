#include "worker/adapter/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/utf8.hpp"
#include "worker/adapter/file_json.hpp"

namespace leasehold {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMetadata = "__metadata__";

struct DtypeRow {
  std::string_view name;
  TensorType type;
};
constexpr DtypeRow kDtypes[] = {
    {"F32", TensorType::F32}, {"F16", TensorType::F16}, {"BF16", TensorType::BF16}};

/// A tensor of the header, with its bytes counted from the start of the data.
struct Extent {
  SafetensorsTensor tensor;
  std::uint64_t begin;
  std::uint64_t end;
};

std::unexpected<Error> refuse(Errc code, std::string_view path, std::string_view name,
                              std::string_view why) {
  return fail(code, fmt::format("{}: tensor {} {}", path, printable_excerpt(name), why));
}

/// Two numbers of an entry, such as its shape.
std::optional<std::pair<std::uint64_t, std::uint64_t>> two_numbers(const Json& entry,
                                                                   const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array() || found->size() != 2) return std::nullopt;
  if (!(*found)[0].is_number_unsigned() || !(*found)[1].is_number_unsigned()) return std::nullopt;
  return std::pair((*found)[0].get<std::uint64_t>(), (*found)[1].get<std::uint64_t>());
}

Result<TensorType> read_dtype(const Json& entry, std::string_view name, std::string_view path) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string())
    return refuse(Errc::FileCorrupt, path, name, "has no dtype");
  const auto& dtype = found->get_ref<const std::string&>();
  const auto* row = std::ranges::find(kDtypes, dtype, &DtypeRow::name);
  if (row != std::end(kDtypes)) return row->type;
  return refuse(
      Errc::UnsupportedModel, path, name,
      fmt::format("has type {}; save the adapter in F32, F16 or BF16", printable_excerpt(dtype)));
}

Result<Extent> read_entry(const std::string& name, const Json& entry, std::uint64_t data_bytes,
                          std::string_view path) {
  const TensorType type = TRY(read_dtype(entry, name, path));
  const auto shape = two_numbers(entry, "shape");
  if (!shape) return refuse(Errc::UnsupportedModel, path, name, "is not a matrix");
  const auto offsets = two_numbers(entry, "data_offsets");
  if (!offsets || offsets->first > offsets->second || offsets->second > data_bytes)
    return refuse(Errc::FileCorrupt, path, name,
                  fmt::format("has data_offsets outside the {} bytes of data", data_bytes));
  const auto [rows, columns] = *shape;
  const std::uint64_t values = (offsets->second - offsets->first) / block_shape(type).size_bytes;
  const bool fits = rows > 0 && columns > 0 && values / rows == columns && values % rows == 0 &&
                    row_size_bytes(type, values) == offsets->second - offsets->first;
  if (!fits)
    return refuse(Errc::FileCorrupt, path, name,
                  fmt::format("is {} × {}, which does not take the {} bytes of its data_offsets",
                              rows, columns, offsets->second - offsets->first));
  return Extent{
      .tensor = {.name = name, .type = type, .rows = rows, .columns = columns, .offset = 0},
      .begin = offsets->first,
      .end = offsets->second};
}

/// Checks that the tensors, in the order of their data, take all of it once.
Result<void> check_cover(std::span<const Extent> extents, std::uint64_t data_bytes,
                         std::string_view path) {
  std::uint64_t end = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != end)
      return refuse(Errc::FileCorrupt, path, extent.tensor.name,
                    fmt::format("begins at byte {} of the data, and the one before it ends at {}",
                                extent.begin, end));
    end = extent.end;
  }
  if (end == data_bytes) return {};
  return fail(Errc::FileCorrupt, fmt::format("{}: has {} bytes of data, and its tensors take {}",
                                             path, data_bytes, end));
}

}  // namespace

Result<void> check_safetensors_header_size(std::uint64_t header_bytes, std::uint64_t file_bytes,
                                           std::string_view path) {
  const std::uint64_t left = file_bytes - std::min(file_bytes, kSafetensorsPrefixBytes);
  const std::uint64_t most = std::min(left, kMaxSafetensorsHeaderBytes);
  if (header_bytes <= most && file_bytes >= kSafetensorsPrefixBytes) return {};
  return fail(Errc::FileCorrupt, fmt::format("{}: its header has {} bytes; at most {} can follow",
                                             path, header_bytes, most));
}

Result<std::vector<SafetensorsTensor>> read_safetensors(std::string_view header,
                                                        std::uint64_t file_bytes,
                                                        std::string_view path) {
  const Json json = TRY(parse_file_object(header, path));
  const std::uint64_t start = kSafetensorsPrefixBytes + header.size();
  std::vector<Extent> extents;
  for (const auto& [name, entry] : json.items()) {
    if (name == kMetadata) continue;
    if (!entry.is_object()) return refuse(Errc::FileCorrupt, path, name, "is not described");
    extents.push_back(TRY(read_entry(name, entry, file_bytes - start, path)));
  }
  std::ranges::sort(extents, {}, &Extent::begin);
  TRY(check_cover(extents, file_bytes - start, path));
  std::vector<SafetensorsTensor> tensors;
  for (Extent& extent : extents) {
    extent.tensor.offset = start + extent.begin;
    tensors.push_back(std::move(extent.tensor));
  }
  return tensors;
}

}  // namespace leasehold
