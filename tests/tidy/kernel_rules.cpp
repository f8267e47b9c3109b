#include "tests/tidy/kernel_rules.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace leasehold::tidy {
namespace {

constexpr std::string_view kDevice = "kernels/cuda/device/";

/// Text that only some files of kernels/cuda/device/ may have.
struct Primitive {
  std::string_view text;
  std::array<std::string_view, 4> allowed_in;
};

constexpr auto kPrimitives = std::to_array<Primitive>({
    {"asm", {"bulk_copy.cuh", "simt.cuh", "wgmma.cuh", "wgmma_int8.cuh"}},
    {"volatile", {"bulk_copy.cuh", "simt.cuh", "wgmma.cuh", "wgmma_int8.cuh"}},
    {"atomic", {"warp_collectives.cuh"}},
    {"__threadfence", {"simt.cuh", "warp_collectives.cuh"}},
    {"load_acquire", {"gate.cuh", "segment_gate.cuh", "warp_collectives.cuh"}},
    {"store_to_host", {"gate.cuh", "segment_gate.cuh"}},
    {"__ldcg", {}},
    {"__ldcv", {}},
    {"__stcg", {}},
    {"__stwt", {}},
    {"__nanosleep", {}},
    {"cooperative_groups", {}},
});

struct KernelException {
  std::string_view path;
  std::string_view text;
  std::string_view reason;
};

constexpr auto kKernelExceptions = std::to_array<KernelException>({
    {"kernels/cuda/device/packed_words.cuh", "asm(\"dp4a.u32.s32 ", "It computes in registers."},
    {"kernels/cuda/device/packed_words.cuh", "asm(\"lop3.b32 ", "It computes in registers."},
    {"kernels/cuda/device/simt.cuh", "load_acquire(const", "It is defined there."},
    {"kernels/cuda/device/simt.cuh", "store_to_host(std", "It is defined there."},
    {"kernels/cuda/ops/bench.cu", "static_cast<volatile", "Each write must reach the memory."},
    {"kernels/cuda/ops/mma_probe.cu", "atomicAdd(&p.results[", "Only the host reads these sums."},
    {"kernels/cuda/ops/sampling.cu", "atomicAdd(&n_kept,", "The counter is in shared memory."},
});

bool is_kernel_code(std::string_view path) {
  return path.starts_with("kernels/") && (path.ends_with(".cu") || path.ends_with(".cuh"));
}

/// Whether the text begins a word of the line.
bool has_word(std::string_view line, std::string_view text) {
  for (auto at = line.find(text); at != std::string_view::npos; at = line.find(text, at + 1)) {
    if (at == 0 || !is_word_character(line[at - 1])) return true;
  }
  return false;
}

bool is_allowed(std::string_view path, const Primitive& primitive) {
  return std::ranges::any_of(primitive.allowed_in, [&](std::string_view name) {
    return !name.empty() && path.starts_with(kDevice) && path.substr(kDevice.size()) == name;
  });
}

bool is_exception(std::string_view path, std::string_view line) {
  return std::ranges::any_of(kKernelExceptions, [&](const KernelException& one) {
    return path == one.path && line.find(one.text) != std::string_view::npos;
  });
}

}  // namespace

Findings protocols_between_blocks(const Sources& sources) {
  Findings findings;
  for (const SourceFile& file : sources) {
    if (!is_kernel_code(file.path)) continue;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      const std::string& line = file.code[i];
      const bool violates = std::ranges::any_of(kPrimitives, [&](const Primitive& primitive) {
        return has_word(line, primitive.text) && !is_allowed(file.path, primitive);
      });
      if (violates && !is_exception(file.path, line))
        findings.push_back({file.path, i + 1, file.lines[i]});
    }
  }
  return findings;
}

}  // namespace leasehold::tidy
