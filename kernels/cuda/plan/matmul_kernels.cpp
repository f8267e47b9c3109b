#include "kernels/cuda/plan/matmul_kernels.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "common/expects.hpp"
#include "kernels/cuda/device/int8/early_params.hpp"

namespace leasehold::cuda {
namespace {

using device::kEarlyColumns;
using device::kInt8Columns;
using device::kInt8ManyColumns;

struct KernelNames {
  std::string few[4];                         ///< Indexed by tiles: 1, 2, 4, 8.
  std::string many[2];                        ///< Indexed by columns: 64, 128.
  std::string int8[std::size(kInt8Columns)];  ///< Indexed as kInt8Columns.
  std::string int8_many[std::size(kInt8ManyColumns)];
  std::string early[std::size(kEarlyColumns)];
};

KernelNames make_names(std::string type) {
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
  KernelNames names;
  for (int i = 0; i < 4; ++i) names.few[i] = "lh_matmul_few_" + type + "_" + std::to_string(1 << i);
  for (int i = 0; i < 2; ++i)
    names.many[i] = "lh_matmul_many_" + type + "_" + std::to_string(64 << i);
  for (std::size_t i = 0; i < std::size(kInt8Columns); ++i)
    names.int8[i] = "lh_matmul_int8_" + type + "_" + std::to_string(kInt8Columns[i]);
  for (std::size_t i = 0; i < std::size(kInt8ManyColumns); ++i)
    names.int8_many[i] = "lh_matmul_int8_many_" + type + "_" + std::to_string(kInt8ManyColumns[i]);
  for (std::size_t i = 0; i < std::size(kEarlyColumns); ++i)
    names.early[i] = "lh_matmul_early_" + type + "_" + std::to_string(kEarlyColumns[i]);
  return names;
}

/// The index of `columns` among those for which there are kernels.
std::size_t index_of(std::span<const std::uint32_t> all, std::uint32_t columns) {
  const auto at = std::ranges::find(all, columns);
  expects(at != all.end(), "the kernels multiply this number of columns");
  return static_cast<std::size_t>(at - all.begin());
}

const KernelNames& names_of(TensorType type) {
  static const std::vector<KernelNames> all = [] {
    std::vector<KernelNames> made;
    for (const TensorTypeRow& row : kTensorTypeRows)
      made.push_back(make_names(std::string(row.name)));
    return made;
  }();
  expects(type != TensorType::F32, "F32 weights use the lh_matmul_f32 kernels");
  return all[static_cast<std::size_t>(type)];
}

}  // namespace

const char* few_rows_kernel(TensorType type, std::uint32_t tiles) {
  return names_of(type).few[std::countr_zero(tiles)].c_str();
}

const char* many_rows_kernel(TensorType type, std::uint32_t columns) {
  return names_of(type).many[columns == 64 ? 0 : 1].c_str();
}

const char* int8_kernel(TensorType type, std::uint32_t columns) {
  return names_of(type).int8[index_of(kInt8Columns, columns)].c_str();
}

const char* int8_many_kernel(TensorType type, std::uint32_t columns) {
  return names_of(type).int8_many[index_of(kInt8ManyColumns, columns)].c_str();
}

const char* early_kernel(TensorType type, std::uint32_t columns) {
  return names_of(type).early[index_of(kEarlyColumns, columns)].c_str();
}

}  // namespace leasehold::cuda
