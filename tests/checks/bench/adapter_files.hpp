/// Adapters of the benchmark's model: their files, names and leases.
#pragma once

#include <cstdint>
#include <string>

#include "common/ids.hpp"
#include "tests/checks/bench/system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::bench {

/// "a0" …; its file is "a0.gguf".
std::string adapter_name(std::uint32_t number);

/// Files in a directory of their own, which is removed with the object: rank 16 on all weights, in
/// F16, each from another seed.
class AdapterFiles {
 public:
  /// Errors: those of reading the model; UnsupportedModel if its layers differ; those of writing.
  static Result<AdapterFiles> create(const std::string& model_path, std::uint32_t count);

  std::string directory() const { return directory_.path(); }
  std::uint64_t bytes_each() const { return bytes_each_; }

 private:
  AdapterFiles(TemporaryDirectory directory, std::uint64_t bytes_each)
      : directory_(std::move(directory)), bytes_each_(bytes_each) {}
  TemporaryDirectory directory_;
  std::uint64_t bytes_each_;
};

/// Registers an adapter for the tenant of this client of a TenantPool, and lifts the tenant's
/// limits of adapters. Errors: those of BrokerView.
Result<void> register_adapter(System& system, std::uint32_t number, std::uint32_t client);

}  // namespace leasehold::bench
