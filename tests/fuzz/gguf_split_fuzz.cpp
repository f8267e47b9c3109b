// Models in several files. Input: a byte for the number of files, 1 to 3, a byte for the one to
// open, the sizes of all but the last one in two bytes each, and the files.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/model/gguf/gguf.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

std::string path_of(const TemporaryDirectory& folder, std::size_t number, std::size_t n_files) {
  return folder.file("m-0000" + std::to_string(number + 1) + "-of-0000" + std::to_string(n_files) +
                     ".gguf");
}

void write(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  fuzz::check(file.good());
}

bool is_typed(const Error& error) {
  return error.code == Errc::FileCorrupt || error.code == Errc::UnsupportedModel ||
         error.code == Errc::FileNotFound;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryDirectory folder = TemporaryDirectory::create("fuzz").value();
  fuzz::Input input({data, size});
  const std::size_t n_files = 1 + input.byte() % 3;
  const std::size_t opened = input.byte() % n_files;
  std::size_t sizes[3] = {};
  for (std::size_t i = 0; i + 1 < n_files; ++i) sizes[i] = input.number<std::uint16_t>();
  std::span<const std::uint8_t> left = input.rest();
  for (std::size_t i = 0; i < n_files; ++i) {
    const bool is_last = i + 1 == n_files;
    const auto bytes = left.first(is_last ? left.size() : std::min(sizes[i], left.size()));
    write(path_of(folder, i, n_files), bytes);
    left = left.subspan(bytes.size());
  }
  const Result<GgufFile> file = GgufFile::open(path_of(folder, opened, n_files));
  fuzz::check(file || is_typed(file.error()));
  if (!file) return 0;
  for (const GgufTensor& tensor : file->tensors()) {
    std::vector<std::byte> bytes(tensor.size_bytes);
    fuzz::check(file->read(tensor, 0, bytes).has_value());
    fuzz::check(std::ranges::equal(bytes, file->data(tensor)));
  }
  fuzz::check(file->identity_now() == file->identity());
  return 0;
}
