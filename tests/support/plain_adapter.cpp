#include "tests/support/plain_formats.hpp"
#include "tests/support/plain_model.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {

// Source: Hu et al. 2021 (LoRA); the keys of llama.cpp's adapters.
void PlainModel::add_adapter(const std::string& path) {
  const GgufFile file = required(GgufFile::open(path));
  const double alpha = required(file.get<float>("adapter.lora.alpha"));
  const auto values_of = [&](const GgufTensor& tensor) {
    return plain_values(static_cast<std::uint32_t>(tensor.type), file.data(tensor).data(),
                        tensor.rows() * tensor.columns());
  };
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (!name.ends_with(".lora_a")) continue;
    const std::string weight(name.substr(0, name.size() - 7));
    const std::size_t rank = tensor.rows();
    const Vector a = values_of(tensor);                                      // [rank, n_in]
    const Vector b = values_of(*required(file.tensor(weight + ".lora_b")));  // [n_out, rank]
    Matrix& matrix = tensors_.at(weight);
    for (std::size_t i = 0; i < matrix.values.size(); ++i)
      for (std::size_t k = 0; k < rank; ++k)
        matrix.values[i] += alpha / static_cast<double>(rank) * b[i / matrix.columns * rank + k] *
                            a[k * matrix.columns + i % matrix.columns];
  }
}

}  // namespace leasehold::testing
