/// Adapters with one changed byte, and the seeds of the fuzz target.
#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/seed_adapter.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/unit/worker/adapter/adapter_cases.hpp"

namespace leasehold::testing {
namespace {

/// A seed's adapter in a directory, as the fuzz target has it.
class SeedFolder {
 public:
  explicit SeedFolder(const AdapterSeed& seed) : seed_(&seed) {
    REQUIRE(make_model::write_adapter(seed_adapter(seed.type, seed.form), folder_.file("a")));
  }

  std::string seed_bytes() const {
    return adapter_seed_bytes(seed_->form, folder_.file("a"), bytes_of);
  }
  /// The files of the adapter, below the directory.
  std::vector<std::string> files() const {
    if (seed_->form == make_model::AdapterForm::Gguf) return {"a"};
    return {"a/adapter_config.json", "a/adapter_model.safetensors"};
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  Result<AdapterFile> open() const { return AdapterFile::open(fd_.get(), "a", config_); }

 private:
  const AdapterSeed* seed_;
  TemporaryDirectory folder_ = TemporaryDirectory::create("seed").value();
  UniqueFd fd_{::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  ModelConfig config_ = seed_config();
};

/// The bytes before the matrices.
std::size_t header_bytes(const std::string& file, const std::string& bytes) {
  if (file.ends_with(".json")) return bytes.size();
  return std::min<std::size_t>(bytes.size(), 1200);
}

/// What is wrong with an outcome, or nothing.
std::string complaint(const SeedFolder& folder) {
  Result<AdapterFile> file = folder.open();
  const auto is_typed = [](const Error& error) {
    return error.code == Errc::FileCorrupt || error.code == Errc::UnsupportedModel ||
           error.code == Errc::MissingWeight;
  };
  if (!file) return is_typed(file.error()) ? "" : file.error().detail;
  const auto matrices = read_all(*file);
  return matrices || is_typed(matrices.error()) ? "" : matrices.error().detail;
}

}  // namespace

TEST_CASE("adapter: every changed byte of a header is refused, or is one of another adapter") {
  const auto* seed = GENERATE(&kAdapterSeeds[0], &kAdapterSeeds[3]);
  const SeedFolder folder(*seed);
  const ContentDigest digest = folder.open()->digest();
  for (const std::string& file : folder.files()) {
    const std::string original = bytes_of(folder.path(file));
    for (std::size_t at = 0; at < header_bytes(file, original); ++at) {
      for (const int change : {1, 0x80}) {
        std::string bytes = original;
        bytes[at] = static_cast<char>(bytes[at] ^ change);
        write_file(folder.path(file), bytes);
        if (const std::string why = complaint(folder); !why.empty())
          FAIL(file << ", byte " << at << ": " << why);
        const auto opened = folder.open();
        if (opened && opened->digest() == digest) FAIL(file << ", byte " << at);
      }
    }
    write_file(folder.path(file), original);
  }
}

TEST_CASE("fuzz: the seeds of adapters are those that make_fuzz_seeds writes") {
  for (const AdapterSeed& seed : kAdapterSeeds) {
    CAPTURE(seed.name);
    const SeedFolder folder(seed);
    CHECK(folder.open());
    const std::string path = source_dir() + "/tests/fuzz/corpus/adapter_fuzz/" + seed.name;
    CHECK((bytes_of(path) == folder.seed_bytes()));
  }
}

}  // namespace leasehold::testing
