#include "tests/checks/bench/adapter_files.hpp"

#include <fmt/format.h>

#include "kernels/model/config.hpp"
#include "tools/make_model/adapter.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kFileRank = 16;
constexpr std::uint64_t kManyBytes = std::uint64_t{1} << 40;

}  // namespace

std::string adapter_name(std::uint32_t number) {
  return fmt::format("a{}", number);
}

Result<AdapterFiles> AdapterFiles::create(const std::string& model_path, std::uint32_t count) {
  const GgufFile model = TRY(GgufFile::open(model_path));
  const ModelConfig config = TRY(read_config(model));
  TemporaryDirectory directory = TRY(TemporaryDirectory::create("adapters"));
  make_model::AdapterRequest request{.model = make_model::base_of(config),
                                     .alpha = static_cast<float>(kFileRank)};
  request.ranks.fill(kFileRank);
  std::uint64_t bytes_each = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    request.seed = i + 1;
    bytes_each = TRY(make_model::write_adapter(request, directory.file(adapter_name(i) + ".gguf")));
  }
  return AdapterFiles(std::move(directory), bytes_each);
}

Result<void> register_adapter(System& system, std::uint32_t number, std::uint32_t client) {
  const TenantId tenant{fmt::format("bench-{}", client)};
  TRY(system.broker().command(
      wire::TenantAdmit{.tenant = tenant,
                        .max_adapters = std::uint32_t{wire::kMaxAdaptersPerOwner},
                        .max_adapter_bytes = kManyBytes}));
  const std::string name = adapter_name(number);
  return system.broker().command(
      wire::AdapterAdd{.adapter = {name}, .file = name + ".gguf", .tenant = tenant});
}

}  // namespace leasehold::bench
