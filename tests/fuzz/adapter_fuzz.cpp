// Adapters, read as a worker does before it computes. Input: a byte for the form, even for a GGUF
// file; for a folder of PEFT the size of its config in two bytes, the config, and the matrices.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/input.hpp"
#include "tests/support/seed_adapter.hpp"
#include "tests/support/temporary_directory.hpp"
#include "worker/adapter/adapter_file.hpp"

using namespace leasehold;

namespace {

void write(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::filesystem::remove(path);  // a new file is faster than one that is emptied
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  fuzz::check(file.good());
}

bool is_typed(const Error& error) {
  return error.code == Errc::FileCorrupt || error.code == Errc::UnsupportedModel ||
         error.code == Errc::MissingWeight;
}

struct Folder {
  TemporaryDirectory directory = TemporaryDirectory::create("fuzz").value();
  UniqueFd fd{::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

  Folder() { std::filesystem::create_directory(directory.path() / "peft"); }
};

/// Writes the input's files and returns the path of the adapter.
std::string write_adapter(const Folder& folder, fuzz::Input input) {
  if (input.byte() % 2 == 0) {
    write(folder.directory.file("gguf"), input.rest());
    return "gguf";
  }
  const std::size_t size = input.number<std::uint16_t>();
  const auto left = input.rest();
  const std::size_t config = std::min(size, left.size());
  write(folder.directory.file("peft/adapter_config.json"), left.first(config));
  write(folder.directory.file("peft/adapter_model.safetensors"), left.subspan(config));
  return "peft";
}

void read_matrices(AdapterFile& file) {
  const Result<AdapterLayout> layout = file.layout(1 << 16);
  fuzz::check(layout || is_typed(layout.error()));
  if (!layout) return;
  for (const AdapterPiece& piece : layout->pieces) {
    fuzz::check(piece.extent < layout->n_extents && piece.offset + piece.size_bytes <= 1 << 16);
    std::vector<std::byte> bytes(piece.size_bytes);
    const Result<void> read = file.read(piece, 0, bytes);
    fuzz::check(read || read.error().code == Errc::FileCorrupt);
  }
  fuzz::check(file.check_read().has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  static const ModelConfig config = testing::seed_config();
  const std::string path = write_adapter(folder, fuzz::Input({data, size}));
  Result<AdapterFile> file = AdapterFile::open(folder.fd.get(), path, config);
  fuzz::check(file || is_typed(file.error()));
  if (file) read_matrices(*file);
  return 0;
}
