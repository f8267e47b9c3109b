#include "tests/property/damaged_model.hpp"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {

std::string model_with_nan_embedding(TokenId token) {
  const GgufFile file = *GgufFile::open(bundled_model_path());
  const GgufTensor* table = file.find("token_embd.weight");
  std::string bytes = file_bytes(bundled_model_path());
  const auto* start = reinterpret_cast<const char*>(file.data(*table).data());
  const std::size_t rows = read_config(file)->n_vocab;
  const std::size_t row_bytes = file.data(*table).size() / rows;
  const std::size_t offset =
      bytes.find(std::string(start, file.data(*table).size())) + token * row_bytes;
  const std::uint16_t nan = 0x7E00;  // the scale of the row's first Q8_0 block, in binary16
  std::memcpy(bytes.data() + offset, &nan, sizeof(nan));
  const auto path = std::filesystem::temp_directory_path() /
                    ("leasehold-nan-" + std::to_string(::getpid()) + ".gguf");
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

}  // namespace leasehold::testing
